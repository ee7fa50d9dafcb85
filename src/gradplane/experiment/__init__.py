"""Experiment files: read, checked, and resolved into what a run needs.

The TOML text and `--set`, the schema with its defaults, the checks that refuse what cannot work,
and the `Deployment`: topology, jobs, host configurations, switch set-ups and target, resolved once.
May import: switch, codecs, hosts, controller, topologies, aggregations.
"""
