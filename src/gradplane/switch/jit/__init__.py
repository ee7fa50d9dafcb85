"""The JIT engine: the IR to LLVM, one native function for the whole path of a packet.

Its results are the interpreter's. Architectures derive a packet's path from it. May import: ir,
runtime, interp.
"""
