"""The JIT engine: the IR to LLVM, one native function for a packet's whole way."""
