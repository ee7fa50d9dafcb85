"""Packets in and out: AF_PACKET sockets on network interfaces, and pcap files.

May import: runtime, jit.
"""
