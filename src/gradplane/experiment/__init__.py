"""Experiment files: read, checked, and resolved into what a run needs.

The TOML text and `--set`, the schema with its defaults, the checks that refuse what cannot work,
and the resolved topology, host configurations and switch setups. May import: switch, codecs, hosts,
controller, topologies.
"""
