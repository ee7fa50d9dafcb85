"""Runs: network, controller, hosts, then the baseline, recorded into a run folder.

Isolation in namespaces, the recorder of the hosts' logs, progress, the run folder
with its manifest and summary, and its records read back and checked. May import every room but
replayer, studies and cli.
"""
