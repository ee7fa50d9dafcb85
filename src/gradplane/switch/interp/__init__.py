"""The reference interpreter: defines what a program means.

Makes a Python closure of each IR node, once for each program. May import: ir, runtime.
"""
