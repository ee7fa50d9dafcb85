"""The randomized Hadamard transform (THC, section 5.1), float32, Sylvester order.

The butterflies of stage h = 1, 2, 4, ... add and subtract values h apart. Each sum is one float32
addition, so blocking changes the speed and no bit of the result.
"""

import math

import numpy as np
from numba import njit

from gradplane.codecs import _random
from gradplane.codecs._base import Floats

_ROW = 8192  # floats that are taken through the short stages while they sit in the cache
_STRIP = 128  # columns that are taken through the long stages together
# The butterflies are written out in each kernel: a shared function for them runs four times slower.
_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _eights(a):  # type: ignore[no-untyped-def]
    """Stages 1, 2 and 4, in registers."""
    for i in range(0, a.size, 8):
        p, q, r, s = a[i], a[i + 1], a[i + 2], a[i + 3]
        t, u, v, w = a[i + 4], a[i + 5], a[i + 6], a[i + 7]
        p, q, r, s, t, u, v, w = p + q, p - q, r + s, r - s, t + u, t - u, v + w, v - w
        p, q, r, s, t, u, v, w = p + r, q + s, p - r, q - s, t + v, u + w, t - v, u - w
        a[i], a[i + 1], a[i + 2], a[i + 3] = p + t, q + u, r + v, s + w
        a[i + 4], a[i + 5], a[i + 6], a[i + 7] = p - t, q - u, r - v, s - w


@njit(cache=True, nogil=True)
def _short_stages(row):  # type: ignore[no-untyped-def]
    h = 1
    if row.size >= 8:
        _eights(row)
        h = 8
    while h < row.size:
        for i in range(0, row.size, 2 * h):
            upper, lower = row[i : i + h], row[i + h : i + 2 * h]
            for c in range(h):
                x, y = upper[c], lower[c]
                upper[c] = x + y
                lower[c] = x - y
        h *= 2


@njit(cache=True, nogil=True)
def _long_stages(a, row):  # type: ignore[no-untyped-def]
    """Stages row, 2 row, ... for the first _STRIP columns of a seen as rows."""
    h = row
    while h < a.size:
        for block in range(0, a.size, 2 * h):
            for i in range(block, block + h, row):
                upper, lower = a[i : i + _STRIP], a[i + h : i + h + _STRIP]
                for c in range(_STRIP):
                    x, y = upper[c], lower[c]
                    upper[c] = x + y
                    lower[c] = x - y
        h *= 2


@njit(cache=True, nogil=True)
def fwht(a):  # type: ignore[no-untyped-def]
    """Replace float32[d], d a power of two, by H a, not normalised."""
    row = min(a.size, _ROW)
    for start in range(0, a.size, row):
        _short_stages(a[start : start + row])
    for column in range(0, row, _STRIP):
        _long_stages(a[column:], row)


@njit(cache=True, nogil=True)
def _flip(x, key, scale, limit, out):  # type: ignore[no-untyped-def]
    """out = D x * scale, held within +-limit; D is the diagonal of the key's signs."""
    for start in range(0, x.size, 64):
        word = _mix(key + np.uint64(start // 64 + 1) * _GOLDEN)
        some, flipped = x[start : start + 64], out[start : start + 64]
        for i in range(some.size):
            factor = -scale if (word >> np.uint64(i)) & np.uint64(1) else scale
            flipped[i] = np.float32(min(max(some[i] * factor, -limit), limit))


@njit(cache=True, nogil=True)
def _sum_squares(x):  # type: ignore[no-untyped-def]
    """Of float32, exact squares in float64 in eight interleaved sums: fast, in one fixed order."""
    sums = np.zeros(8)
    whole = x.size - x.size % 8
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += np.float64(x[i + j]) * np.float64(x[i + j])
    for i in range(whole, x.size):
        sums[i - whole] += np.float64(x[i]) * np.float64(x[i])
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


def norm(x: Floats) -> float:
    """The Euclidean norm in float64; the same bits on every machine."""
    return math.sqrt(_sum_squares(x))


def rotate(x: Floats, lanes: int, key: int, scale: float) -> Floats:
    """H D x * scale as float32[lanes], x padded with zeros; D is the diagonal of the key's signs.

    Scaling comes first, in float64, so that tiny and huge x neither vanish nor overflow."""
    out = np.zeros(lanes, np.float32)
    # Beyond 2^100 every value is clamped later; the bound only keeps the sums of H finite.
    _flip(x, np.uint64(key), scale, 2.0**100, out)
    fwht(out)
    return out


def unrotate(y: Floats, n: int, key: int, scale: float) -> Floats:
    """The first n values of D H y * scale. y is overwritten."""
    out = np.empty(n, np.float32)
    fwht(y)
    _flip(y[:n], np.uint64(key), scale, float(np.finfo(np.float32).max), out)
    return out
