"""Columns of integers as JSON values: one number where all are equal, else packed bytes.

Packed are the differences between neighbours, in the smallest signed type that holds them,
compressed (zlib) and as text (base64): {"<i2": "eJz..."}. Differences are taken modulo 2^64.
"""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = ("<i1", "<i2", "<i4", "<i8")
_LEVEL = 1  # the differences are small or random: more effort gains nothing

Packed = int | dict[str, str]


def pack(column: npt.NDArray[np.integer[Any]]) -> Packed:
    """Return a column of at least one integer as a JSON value."""
    if (column == column[0]).all():
        return int(column[0])
    differences = np.diff(column.astype(np.uint64), prepend=np.uint64(0)).view(np.int64)
    low, high = int(differences.min()), int(differences.max())
    kind = next(t for t in _TYPES if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    data = zlib.compress(differences.astype(kind).tobytes(), _LEVEL)
    return {kind: base64.b64encode(data).decode("ascii")}


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
