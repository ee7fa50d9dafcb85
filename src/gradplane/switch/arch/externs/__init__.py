"""Externs that several architectures offer: rows for their tables, with both engines' side by side.

What differs between architectures (names, the order of arguments, how colours are numbered) is
given when a row is made. In each module, functions whose names end in `_native` write machine code.
"""
