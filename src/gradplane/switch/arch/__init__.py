"""Architectures: the path of a packet through a package's blocks, and their externs.

May import: ir, runtime, interp.
"""
