"""Models, data sets, and the training of one worker as a generator of steps.

No I/O and no clock. May import the results of the room `protocols`.
"""
