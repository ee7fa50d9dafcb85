"""Replays: re-enact a recorded run and compare its digests with the recorded ones.

The recorded outcomes, the switches without time, and the workers and servers driven slot by slot.
May import every room but report, studies and cli.
"""
