"""The simulated network, under virtual time."""
