"""Runs: network, controller, hosts, then the baseline, recorded into a run folder.

Isolation in namespaces, the recorder of the hosts' logs, traffic counters, progress, the run folder
and its summary. May import every room but replayer, studies and cli.
"""
