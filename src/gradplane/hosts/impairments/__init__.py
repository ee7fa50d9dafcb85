"""Losses, delays and stragglers at a host's end of its link.

`verdicts` documents the keys of an experiment file. Verdicts are functions of a packet's identity
and a seed. May import the rooms `wire`, `protocols` and `stream`, and the environment of `drivers`.
"""
