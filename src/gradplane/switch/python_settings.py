"""Settings of the Python interpreter that large P4 programs need."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION_LIMIT = 10_000  # enough for a chain of 1000 operators; Python's default is 1000


def allow_deep_recursion() -> None:
    """Raise Python's recursion limit for good, if it is lower.

    The compiler, the interpreter and what else walks a program's trees recurse as deeply as its
    expressions are nested. The default stack of a thread, 8 MB, suffices for this limit.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))


@contextmanager
def collections_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector while many objects are made that are all kept.

    A program with 40,000 table entries makes a million objects; the collector would visit them time
    and again, which takes half of the time. In nested use only the outermost call resumes it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
