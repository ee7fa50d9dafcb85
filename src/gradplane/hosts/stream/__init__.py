"""Reliable messages over UDP, without I/O."""
