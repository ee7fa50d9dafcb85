"""The randomized Hadamard transform (THC, section 5.1), float32, Sylvester order.

The butterflies of stage h = 1, 2, 4, ... add and subtract values h apart. Each sum is one float32
addition, so blocking changes the speed and no bit of the result.
"""

import math

import numpy as np
from numba import njit

from gradplane.codecs import _random
from gradplane.codecs._base import Floats
from gradplane.codecs._butterflies import WIDTH, first_six, one, three, two

_ROW = 4096  # floats that go through the short stages while they are in the cache
_BLOCK = 64  # floats that go through the first six stages in registers
_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _plain(a):  # type: ignore[no-untyped-def]
    """Apply all stages to an array that is shorter than a block."""
    h = 1
    while h < a.size:
        for block in range(0, a.size, 2 * h):
            for i in range(block, block + h):
                a[i], a[i + h] = a[i] + a[i + h], a[i] - a[i + h]
        h *= 2


@njit(cache=True, nogil=True)
def _stages(a, start, stop, h):  # type: ignore[no-untyped-def]
    """Apply the stages from h >= 8 on to a[start:stop], three at a time, which saves loads.

    Both h and stop - start are powers of two.
    """
    while 8 * h <= stop - start:
        for block in range(start, stop, 8 * h):
            for i in range(block, block + h, WIDTH):
                three(a, i, h)
        h *= 8
    if 4 * h == stop - start:
        for i in range(start, start + h, WIDTH):
            two(a, i, h)
    elif 2 * h == stop - start:
        for i in range(start, start + h, WIDTH):
            one(a, i, h)


@njit(cache=True, nogil=True)
def _short_stages(a, start, stop):  # type: ignore[no-untyped-def]
    """Apply the stages that stay within a[start:stop], at least a block of values."""
    for i in range(start, stop, _BLOCK):
        first_six(a, i, WIDTH)
    _stages(a, start, stop, _BLOCK)


@njit(cache=True, nogil=True)
def _flip(x, key, scale, limit, out):  # type: ignore[no-untyped-def]
    """Set out to D x * scale, clamped to +-limit; D is the diagonal of the key's signs."""
    for start in range(0, x.size, 64):
        key += _GOLDEN
        word = _mix(key)
        some, flipped = x[start : start + 64], out[start : start + 64]
        for i in range(some.size):
            factor = -scale if (word >> np.uint64(i)) & np.uint64(1) else scale
            flipped[i] = np.float32(min(max(some[i] * factor, -limit), limit))


@njit(cache=True, nogil=True)
def fwht(a):  # type: ignore[no-untyped-def]
    """Replace contiguous float32[d], d a power of two, by H a, not normalised.

    Raises ValueError for another d.
    """
    if a.size & (a.size - 1):
        raise ValueError("the Hadamard transform takes a power of two of values")
    if a.size < _BLOCK:
        _plain(a)
        return
    row = min(a.size, _ROW)
    for start in range(0, a.size, row):
        _short_stages(a, start, start + row)
    _stages(a, 0, a.size, row)


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


@njit(cache=True, nogil=True)
def _rotate(x, key, scale, out):  # type: ignore[no-untyped-def]
    row = min(out.size, _ROW)
    for start in range(0, out.size, row):
        stop = start + row
        some = x[start:stop]
        # Beyond 2^100 every value is clamped later; the bound only keeps the sums of H finite.
        _flip(some, key + np.uint64(start // 64) * _GOLDEN, scale, 2.0**100, out[start:stop])
        out[start + some.size : stop] = 0
        if row >= _BLOCK:
            _short_stages(out, start, stop)
    if row >= _BLOCK:
        _stages(out, 0, out.size, row)
    else:
        _plain(out)


def rotate(x: Floats, lanes: int, key: int, scale: float) -> Floats:
    """Return H D x * scale as float32[lanes], x padded with zeros; D is the diagonal of signs.

    Scaling comes first, in float64, so that tiny and huge x neither vanish nor overflow.
    """
    out = np.empty(lanes, np.float32)
    _rotate(x, np.uint64(key), scale, out)
    return out


def unrotate(y: Floats, out: Floats, key: int, scale: float) -> None:
    """Fill out with the first values of D H y * scale. y is overwritten."""
    fwht(y)
    _flip(y[: out.size], np.uint64(key), scale, float(np.finfo(np.float32).max), out)
