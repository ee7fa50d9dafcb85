"""Back ends: a compiled program in the form that another switch takes, a folder for each.

May import ir, runtime and arch.
"""
