"""Short pauses of Python's garbage collector, for a process with many objects.

A full collection visits every object: with a million table entries it stops packets for seconds,
each time that their number has grown by a quarter. Entries are freed without it when they are
deleted, so each object is visited by one full collection here and by none after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def short_collections() -> Iterator[None]:
    """Exempt objects that survive a full collection from later ones in this context."""
    gc.callbacks.append(_leave_alone)
    try:
        yield
    finally:
        gc.callbacks.remove(_leave_alone)
        gc.unfreeze()


def visit_all() -> None:
    """Make the next full collection visit every object, after many have fallen out of use."""
    gc.unfreeze()


def _leave_alone(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
