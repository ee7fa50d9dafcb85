"""Runs: network, controller, hosts, then the baseline, recorded into a run folder.

Isolation in namespaces, progress, the machine. May import every room but replayer, studies and cli.
"""
