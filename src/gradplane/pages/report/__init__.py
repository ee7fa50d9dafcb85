"""Reports: the HTML page of one run, of several side by side, or of a sweep.

Tables, figures and the page around them, made from run folders only.
"""
