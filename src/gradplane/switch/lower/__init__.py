"""The third stage of the compiler: a checked syntax tree to the IR.

May import: ir, syntax, check.
"""
