"""The simulated network: switches, links and hosts in one process, under virtual time."""
