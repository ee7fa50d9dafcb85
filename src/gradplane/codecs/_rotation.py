"""A vector's randomized Hadamard transform, by itself: what is lost of it spreads over all values.

It is cut as THC cuts vectors, into powers of two of values, so that few zeros are added.
"""

from __future__ import annotations

import math

import numpy as np

from gradplane.codecs import _hadamard
from gradplane.codecs._base import Floats
from gradplane.codecs._random import key
from gradplane.codecs.thc import THC

CUTS = THC()
"""The codec whose partitions are those of rotated vectors."""


def rotated_size(n: int) -> int:
    """Return the number of values of a rotated vector of n values, n or more."""
    return CUTS.lanes(n)


def rotated(x: Floats, seed: int) -> Floats:
    """Return the transform of float32[n], orthonormal, with signs that follow from the seed."""
    parts = CUTS.partitions(x.size)
    out = [
        _hadamard.rotate(x[p.start : p.stop], p.lanes, key(seed, k), 1 / math.sqrt(p.lanes))
        for k, p in enumerate(parts)
    ]
    return np.concatenate(out) if out else np.zeros(0, np.float32)


def unrotated(y: Floats, n: int, seed: int) -> Floats:
    """Return the float32[n] whose transform float32[rotated_size(n)] is."""
    x = np.empty(n, np.float32)
    for k, p in enumerate(CUTS.partitions(n)):
        piece = y[p.lane : p.lane + p.lanes].astype(np.float32)  # a copy, which is overwritten
        _hadamard.unrotate(piece, x[p.start : p.stop], key(seed, k), 1 / math.sqrt(p.lanes))
    return x
