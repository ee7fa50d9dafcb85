"""Reliable messages over UDP as a state machine: segments, window, retransmission, reassembly.

May import the actions of the room `protocols`, and the batches of payloads of `wire`.
"""
