"""Models, data sets and the training of one worker."""
