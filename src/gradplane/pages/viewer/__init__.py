"""Pages that one can look into: a P4 program's graphs, and runs packet by packet."""
