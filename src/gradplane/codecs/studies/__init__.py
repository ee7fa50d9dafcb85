"""Numbers for the papers' tables and figures, from codecs alone: no network, no printing.

Each module takes gradients (`gradients` makes some, a run records others) and returns rows, the
paper's number beside ours where our copy of the paper has it.
"""
