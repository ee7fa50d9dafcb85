"""Run an experiment: network, controller, hosts, baseline, run folder."""
