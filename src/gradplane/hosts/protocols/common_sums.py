"""The sums of a reduce, which workers of one process share while they get the same ones.

On a simulated network all of them do: they would fill memory with copies, and compare these.
"""

import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.config import JobConfig
from gradplane.hosts.wire import aggregation


class CommonSums:
    """values: unsigned[chunks, lanes], 0 where no sums are known; known: uint8[chunks], 1 where
    they are.

    Who gets sums that are known already has to compare them, and changes nothing."""

    def __init__(self, job: JobConfig, chunks: int) -> None:
        self._job = job  # whose identity stands for it as long as it exists
        bits = job.transport.sum_bits
        self.values: npt.NDArray[Any] = np.zeros((chunks, aggregation.LANES[bits]), f"u{bits // 8}")
        self.known = np.zeros(chunks, np.uint8)

    @classmethod
    def of(cls, job: JobConfig, first: int, chunks: int) -> "CommonSums":
        """Return the sums of a job's chunks from `first` on, one object for all workers with the
        same JobConfig in this thread."""
        key = id(job), threading.get_ident(), first, chunks
        found = _kept.get(key)
        if found is None:
            found = _kept[key] = cls(job, chunks)
        return found

    def copy(self, rows: npt.NDArray[np.bool_]) -> "CommonSums":
        """Return a copy that one worker has for itself, with these rows alone."""
        own = CommonSums(self._job, len(rows))
        own.values[rows], own.known[:] = self.values[rows], rows
        return own


_kept: "weakref.WeakValueDictionary[tuple[int, ...], CommonSums]" = weakref.WeakValueDictionary()
