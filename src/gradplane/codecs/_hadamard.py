"""The randomized Hadamard transform (THC, section 5.1), float32, Sylvester order.

The butterflies of stage h = 1, 2, 4, ... add and subtract values h apart. Each sum is one float32
addition, so blocking changes the speed and no bit of the result.
"""

import math

import numpy as np
from numba import njit

from gradplane.codecs import _random
from gradplane.codecs._base import Floats

_ROW = 8192  # floats that go through the short stages while they are in the cache
_STRIP = 256  # columns that go through the long stages together
# The butterflies are written out in each kernel: a shared function for them runs four times slower.
_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _eights(a):  # type: ignore[no-untyped-def]
    """Apply stages 1, 2 and 4 in registers."""
    for i in range(0, a.size, 8):
        p, q, r, s = a[i], a[i + 1], a[i + 2], a[i + 3]
        t, u, v, w = a[i + 4], a[i + 5], a[i + 6], a[i + 7]
        p, q, r, s, t, u, v, w = p + q, p - q, r + s, r - s, t + u, t - u, v + w, v - w
        p, q, r, s, t, u, v, w = p + r, q + s, p - r, q - s, t + v, u + w, t - v, u - w
        a[i], a[i + 1], a[i + 2], a[i + 3] = p + t, q + u, r + v, s + w
        a[i + 4], a[i + 5], a[i + 6], a[i + 7] = p - t, q - u, r - v, s - w


@njit(cache=True, nogil=True)
def _stages(a, h, step, width):  # type: ignore[no-untyped-def]
    """Apply stages h, 2 h, ..., two at a time, which halves the loads and stores.

    Of each run of `step` values in a block only the first `width` take part.
    """
    while 2 * h < a.size:
        length = min(h, width)
        for block in range(0, a.size, 4 * h):
            for i in range(block, block + h, min(h, step)):
                first, second = a[i : i + length], a[i + h : i + h + length]
                third, fourth = a[i + 2 * h : i + 2 * h + length], a[i + 3 * h : i + 3 * h + length]
                for c in range(length):
                    p, q, r, s = first[c], second[c], third[c], fourth[c]
                    p, q, r, s = p + q, p - q, r + s, r - s
                    first[c], second[c], third[c], fourth[c] = p + r, q + s, p - r, q - s
        h *= 4
    if h < a.size:
        length = min(h, width)
        for i in range(0, h, min(h, step)):
            upper, lower = a[i : i + length], a[i + h : i + h + length]
            for c in range(length):
                p, q = upper[c], lower[c]
                upper[c], lower[c] = p + q, p - q


@njit(cache=True, nogil=True)
def fwht(a):  # type: ignore[no-untyped-def]
    """Replace float32[d], d a power of two, by H a, not normalised: two passes over its memory.

    Raises ValueError for another d.
    """
    if a.size & (a.size - 1):
        raise ValueError("the Hadamard transform takes a power of two of values")
    row = min(a.size, _ROW)
    for start in range(0, a.size, row):
        some = a[start : start + row]
        if row >= 8:
            _eights(some)
        _stages(some, 8 if row >= 8 else 1, row, row)
    for column in range(0, row if row < a.size else 0, _STRIP):
        _stages(a[column:], row, row, _STRIP)


@njit(cache=True, nogil=True)
def _flip(x, key, scale, limit, out):  # type: ignore[no-untyped-def]
    """Set out to D x * scale, clamped to +-limit; D is the diagonal of the key's signs."""
    for start in range(0, x.size, 64):
        word = _mix(key + np.uint64(start // 64 + 1) * _GOLDEN)
        some, flipped = x[start : start + 64], out[start : start + 64]
        for i in range(some.size):
            factor = -scale if (word >> np.uint64(i)) & np.uint64(1) else scale
            flipped[i] = np.float32(min(max(some[i] * factor, -limit), limit))


@njit(cache=True, nogil=True)
def _sum_squares(x):  # type: ignore[no-untyped-def]
    """Sum the squares of float32 in float64, in eight interleaved sums: fast, in a fixed order."""
    sums = np.zeros(8)
    whole = x.size - x.size % 8
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += np.float64(x[i + j]) * np.float64(x[i + j])
    for i in range(whole, x.size):
        sums[i - whole] += np.float64(x[i]) * np.float64(x[i])
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


def norm(x: Floats) -> float:
    """Return the Euclidean norm in float64; equal bits on every machine."""
    return math.sqrt(_sum_squares(x))


def rotate(x: Floats, lanes: int, key: int, scale: float) -> Floats:
    """Return H D x * scale as float32[lanes], x padded with zeros; D is the diagonal of signs.

    Scaling comes first, in float64, so that tiny and huge x neither vanish nor overflow.
    """
    out = np.zeros(lanes, np.float32)
    # Beyond 2^100 every value is clamped later; the bound only keeps the sums of H finite.
    _flip(x, np.uint64(key), scale, 2.0**100, out)
    fwht(out)
    return out


def unrotate(y: Floats, out: Floats, key: int, scale: float) -> None:
    """Fill out with the first values of D H y * scale. y is overwritten."""
    fwht(y)
    _flip(y[: out.size], np.uint64(key), scale, float(np.finfo(np.float32).max), out)
