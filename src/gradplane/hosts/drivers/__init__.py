"""The drivers of the state machines, which perform the actions that these return.

`Host` runs through an `Environment`: sockets in a process (`socket_environment`), or the simulated
network of gradplane.topologies. May import every other room of hosts.
"""
