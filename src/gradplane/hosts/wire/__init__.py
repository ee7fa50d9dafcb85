"""The formats of packets: aggregation headers, indices and sums, and marked float32 values.

Imports no other room of hosts.
"""
