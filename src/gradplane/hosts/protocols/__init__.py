"""The state machines of workers, servers and ring members, without I/O."""
