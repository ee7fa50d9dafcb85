"""Workers, parameter server, ring members and synchronisation as state machines.

They do no I/O and have no clock: events and the time come in, actions go out (`actions`). May
import the room `wire`, and of the others nothing.
"""
