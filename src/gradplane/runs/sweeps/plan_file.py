"""The file that marks a sweep's folder."""

from pathlib import Path

PLAN = "sweep.json"


def is_sweep(folder: str | Path) -> bool:
    """Return whether a folder is a sweep's."""
    return (Path(folder) / PLAN).exists()
