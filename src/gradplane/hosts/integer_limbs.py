"""Integers as float32 whose sums over up to 64 workers are exact: limbs of 16 bits.

For schemes that add float32 without loss. A sum of 64 limbs is below 2^22, so that the mean, which
is what such a scheme gives, times the number of workers rounds to the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.protocols.results import Floats

_BITS = 16


def split(x: npt.NDArray[Any]) -> Floats:
    """Return the limbs of int32[n] or int64[n], all lowest ones first."""
    words = x.astype(np.int64).view(np.uint64)
    limbs = [words >> np.uint64(_BITS * k) & np.uint64(0xFFFF) for k in range(_limbs(x.dtype))]
    return np.concatenate(limbs).astype(np.float32)


def joined(mean: Floats, workers: int, kind: np.dtype[Any]) -> npt.NDArray[np.int64]:
    """Return the sums of integers of that type from the mean of their limbs over all workers."""
    sums = np.rint(mean.astype(np.float64) * workers).astype(np.uint64).reshape(_limbs(kind), -1)
    total = np.zeros(sums.shape[1], np.uint64)
    for k, limb in enumerate(sums):
        total += limb << np.uint64(_BITS * k)
    return total.view(np.int64).astype(kind).astype(np.int64)


def _limbs(kind: np.dtype[Any]) -> int:
    return kind.itemsize * 8 // _BITS
