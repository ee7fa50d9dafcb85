"""What a reduce in flight is busy with, for those who measure it, such as a profiler."""

from collections.abc import Callable
from typing import Literal

Phase = Literal["encode", "network", "decode"]
Watch = Callable[[int, Phase], None]
"""Called with a reduce's ticket as the reduce enters a phase, which lasts until its next one."""


def unwatched(ticket: int, phase: Phase) -> None:
    """Tell nobody."""
