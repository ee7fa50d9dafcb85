"""What drives the state machines: they ask for actions, the drivers perform them.

`Host` runs through an `Environment`: sockets in a process (`socket_environment`), or the simulated
network of gradplane.topologies. May import every other room of hosts.
"""
