"""The second stage of the compiler: types, constants and names of a syntax tree.

Collects every error of the stage before it reports them. May import: ir, syntax.
"""
