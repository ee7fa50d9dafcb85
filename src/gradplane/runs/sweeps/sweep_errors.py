"""The error of sweeps."""


class SweepError(Exception):
    """A sweep that cannot be made, continued or read; the message says why and what to do."""
