"""The file that marks a sweep's folder, and the error of sweeps."""

from pathlib import Path

PLAN = "sweep.json"


def is_sweep(folder: str | Path) -> bool:
    """Return whether a folder is a sweep's."""
    return (Path(folder) / PLAN).exists()


class SweepError(Exception):
    """A sweep that cannot be made, continued or read; the message says why and what to do."""
