"""The verdicts on packets, and which of them lose the packet."""

VERDICTS = ("drop", "delay", "leave out", "corrupt", "duplicate")
ARRIVING = ("delay", "duplicate")
"""The verdicts under which a packet arrives; under all others it is lost, or too late."""
