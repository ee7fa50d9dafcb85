"""Sparse vectors: which k of n values are sent, and their bytes.

The bytes are uint32 indices, ascending, then the float32 values. `largest` finds the k largest of n
keys in two passes over them, without sorting; ties go to the lowest index. The first pass counts
keys by their leading 11 bits (of a float: the exponent and three bits more), which gives the bin of
the k-th largest. The second collects the keys in that bin or above. Only the keys in the bin are
then compared.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Floats, Reader, check_int, check_share, check_vector

Keys = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.uint32]
_BIN = np.uint32(21)  # bits within a bin


@njit(cache=True, nogil=True)
def _count(keys, drop, counts):  # type: ignore[no-untyped-def]
    """Count with four counters a bin, as neighbours often share a bin and would wait."""
    whole = keys.size - keys.size % 4
    for i in range(0, whole, 4):
        for j in range(4):
            counts[j, np.uint32(keys[i + j] << drop) >> _BIN] += 1
    for i in range(whole, keys.size):
        counts[0, np.uint32(keys[i] << drop) >> _BIN] += 1


@njit(cache=True, nogil=True)
def _collect(keys, drop, lowest, out):  # type: ignore[no-untyped-def]
    """Collect the indices of keys from `lowest` on; out has one element too many."""
    at = 0
    for i in range(keys.size):
        out[at] = i
        at += np.uint32(keys[i] << drop) >= lowest


@njit(cache=True, nogil=True)
def _keep(keys, drop, found, threshold, ties, out):  # type: ignore[no-untyped-def]
    """Keep the indices of keys above the threshold, and of the first `ties` that equal it."""
    at = 0
    for i in range(found.size):
        key = np.uint32(keys[found[i]] << drop)
        equal = key == threshold
        if key > threshold or (equal and ties > 0):
            out[at] = found[i]
            at += 1
        ties -= equal


def largest(keys: Keys, k: int, drop: int = 0) -> Indices:
    """Return ascending indices, uint32[k], of the k largest keys (0 <= k <= n < 2^32).

    The `drop` leading bits of the keys are ignored.
    """
    if k == 0 or k == keys.size:
        return np.arange(k, dtype=np.uint32)
    shift = np.uint32(drop)
    lowest, above, within = _boundary(keys, k, shift)
    found = np.empty(above + within + 1, np.uint32)
    _collect(keys, shift, lowest, found)
    found = found[:-1]
    if above + within == k:
        return found
    threshold, ties = _threshold(keys[found] << shift, lowest, k - above)
    out = np.empty(k, np.uint32)
    _keep(keys, shift, found, threshold, ties, out)
    return out


def largest_magnitudes(x: Floats, k: int) -> Indices:
    """Return ascending indices, uint32[k], of the k values of greatest magnitude."""
    return largest(x.view(np.uint32), k, drop=1)


def _boundary(keys: Keys, k: int, drop: np.uint32) -> tuple[np.uint32, int, int]:
    """Return the lowest key of the k-th largest's bin, and how many keys are above and in it."""
    counts = np.zeros((4, 1 << (32 - int(_BIN))), np.int64)
    _count(keys, drop, counts)
    at_least = counts.sum(0)[::-1].cumsum()[::-1]
    bin = int(np.flatnonzero(at_least >= k)[-1])
    above = int(at_least[bin + 1]) if bin + 1 < at_least.size else 0
    return np.uint32(bin << int(_BIN)), above, int(at_least[bin]) - above


def _threshold(candidates: Keys, lowest: np.uint32, rank: int) -> tuple[np.uint32, Any]:
    """Return the rank-th largest key in the bin from `lowest` on, and how many ties to keep."""
    inside = candidates[candidates >> _BIN == lowest >> _BIN]
    place = inside.size - rank
    threshold = np.partition(inside, place)[place]
    return threshold, rank - int(np.count_nonzero(inside > threshold))


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
