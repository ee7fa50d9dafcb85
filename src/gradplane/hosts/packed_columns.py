"""Columns of integers as JSON values: one number where all are equal, else packed bytes.

Packed are the differences between neighbours, in the smallest signed type that holds them,
compressed (zlib) and as text (base64): {"<i2": "eJz..."}. Differences are taken modulo 2^64.
"""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit

_TYPES = {f"<i{size}": 1 << (8 * size - 1) for size in (1, 2, 4, 8)}  # and how many are negative
_LEVEL = 1  # the differences are small or random: more effort gains nothing

Packed = int | dict[str, str]


def pack(column: npt.NDArray[np.integer[Any]]) -> Packed:
    """Return a column of at least one integer as a JSON value."""
    differences = np.empty(column.size, np.int64)
    low, high = _subtract(column.astype(np.int64), differences)
    if low == high == 0:
        return int(column[0])
    first = int(differences[0])
    low, high = min(low, first), max(high, first)
    kind = next(kind for kind, half in _TYPES.items() if -half <= low and high < half)
    data = zlib.compress(differences.astype(kind).tobytes(), _LEVEL)
    return {kind: base64.b64encode(data).decode("ascii")}


@njit(cache=True, nogil=True)
def _subtract(column, differences):  # type: ignore[no-untyped-def]
    """Set the differences of int64[n], the first one from 0; return the least and the largest of
    the others, and 0."""
    before, low, high = column[0], np.int64(0), np.int64(0)
    differences[0] = before
    for i in range(1, column.size):
        value = column[i]
        step = differences[i] = value - before
        low, high, before = min(low, step), max(high, step), value
    return low, high


def unpack(packed: Packed, n: int) -> npt.NDArray[np.uint64]:
    """Return the column of n integers, uint64. ValueError if it is damaged or not of n."""
    if isinstance(packed, int):
        return np.full(n, packed, np.uint64)
    ((kind, text),) = packed.items()
    if kind not in _TYPES:
        raise ValueError(f"a column of type {kind}")
    try:
        differences = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), kind)
    except zlib.error as error:
        raise ValueError(f"a damaged column: {error}") from None
    if len(differences) != n:
        raise ValueError(f"a column of {len(differences)} numbers, not {n}")
    return np.cumsum(differences.astype(np.int64).view(np.uint64), dtype=np.uint64)
