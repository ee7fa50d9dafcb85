"""The phases of a reduce, as a profiler that watches it is told of them."""

from collections.abc import Callable
from typing import Literal

Phase = Literal["encode", "network", "decode"]
Watch = Callable[[int, Phase], None]
"""Called with a reduce's ticket as the reduce enters a phase, which lasts until its next one."""


def unwatched(ticket: int, phase: Phase) -> None:
    """Tell nobody."""
