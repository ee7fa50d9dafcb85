"""Threads for what hosts have put off, or will need soon, while the event loop runs in its own.

Nothing of it takes virtual time, and all of it is pure, so that a run is the same with any number
of processors.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gradplane._deferred import Deferred


class SpareCores:
    """A context manager, at whose end what has not begun is dropped."""

    def __init__(self) -> None:
        count = len(os.sched_getaffinity(0)) - 1
        self._threads = ThreadPoolExecutor(count, "spare core") if count else None

    def compute(self, work: Deferred[Any]) -> None:
        """Compute it, now or soon."""
        if self._threads is None:
            work.get()
        else:
            self._threads.submit(work.get)  # an error comes again where the value is wanted

    def __enter__(self) -> SpareCores:
        return self

    def __exit__(self, *error: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
