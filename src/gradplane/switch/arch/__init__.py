"""Architectures: a folder each, found by its name, and what they share.

A folder `arch/NAME/` holds everything about an architecture: its include file (`include/`), and in
`__init__.py` a record `ARCHITECTURE` (gradplane.switch.arch.architecture). `externs/` has externs
that several architectures offer, each implemented for the interpreter and for the JIT.

May import ir, runtime, interp and jit; an architecture does not import another one.
"""
