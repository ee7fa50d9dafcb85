"""Python's garbage collector, for a process that keeps many objects and should not pause long.

A full collection visits every object there is: with a million table entries it stops packets for
seconds, each time that their number grew by a quarter. Entries are freed without it when they are
deleted, so here each object is visited by one full collection and then left alone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def short_collections() -> Iterator[None]:
    """As long as this lasts, what survives a full collection is not visited by the next ones."""
    gc.callbacks.append(_leave_alone)
    try:
        yield
    finally:
        gc.callbacks.remove(_leave_alone)
        gc.unfreeze()


def visit_all() -> None:
    """Has the next full collection visit every object: some that were in use are no longer."""
    gc.unfreeze()


def _leave_alone(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
