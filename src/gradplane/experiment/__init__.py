"""Experiment files: read, checked, and resolved into what a run needs.

`loading` reads the TOML text and `--set`; `schema` has the keys and their defaults; `deploying`
resolves an experiment once into a frozen `Deployment` and refuses what cannot work. May import:
switch, codecs, planner, hosts, controller, topologies, aggregations.
"""
