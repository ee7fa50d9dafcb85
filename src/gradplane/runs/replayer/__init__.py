"""Replays: re-enact a recorded run and compare its digests with the recorded ones.

Contains the recorded outcomes, the switches without time, and the re-enactment slot by slot.
"""
