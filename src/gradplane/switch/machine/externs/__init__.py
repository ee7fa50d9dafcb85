"""Externs that several architectures offer: rows for their tables, for both engines side by side.

The differences between architectures (names, order of arguments, numbering of colours) are
given when a row is made. In each module, functions whose names end in `_native` write machine code.
"""
