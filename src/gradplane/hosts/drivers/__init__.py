"""What drives the state machines: on sockets, or in the simulated network."""
