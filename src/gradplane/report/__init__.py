"""Reports: the HTML page of one run, or of several side by side.

Tables, figures and the page around them, made from run folders only. May import: codecs,
experiment, records.
"""
