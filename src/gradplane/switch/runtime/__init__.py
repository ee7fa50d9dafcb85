"""The state of a running switch, which the engines and the control plane share.

Match tables, registers, counters, meters, action profiles, multicast groups. May import: ir.
"""
