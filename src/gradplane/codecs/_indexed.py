"""Sparse vectors as bytes: uint32 indices, ascending, then the float32 values."""

import numpy as np
import numpy.typing as npt

from gradplane.codecs._base import CodecError, Floats, check_int, check_vector
from gradplane.codecs._params import check_share
from gradplane.codecs._reader import Reader

Indices = npt.NDArray[np.uint32]


def check_density(fraction: float, k: int | None) -> None:
    """Raise CodecError unless 0 < fraction <= 1 and k is None or at least 1."""
    check_share("fraction", fraction)
    if k is not None:
        check_int("k", k, 1)


def kept(n: int, fraction: float, k: int | None = None) -> int:
    """Return the number of n values to send: k or round(fraction * n); from 1 (n = 0: 0) to n."""
    return min(n, max(1, round(fraction * n)) if k is None else k)


def pack(indices: Indices, values: Floats) -> bytes:
    """Return the bytes, 8 for each value."""
    return indices.astype("<u4").tobytes() + values.astype("<f4").tobytes()


def unpack(reader: Reader, count: int, n: int) -> Floats:
    """Return float32[n], 0 where nothing was sent. CodecError for damaged indices or values."""
    indices = reader.array("<u4", count, f"{count} indices")
    values = reader.array("<f4", count, f"{count} values")
    reader.end()
    falling = np.flatnonzero(indices[1:] <= indices[:-1])
    if falling.size:
        at = int(falling[0]) + 1
        raise CodecError(f"index {indices[at]} at place {at} follows {indices[at - 1]}")
    if count and indices[-1] >= n:
        raise CodecError(f"index {indices[-1]} at place {count - 1} is not below {n}")
    out = np.zeros(n, np.float32)
    out[indices] = check_vector(values.astype(np.float32))
    return out
