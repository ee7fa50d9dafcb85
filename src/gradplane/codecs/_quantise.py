"""Stochastic quantisation to a lookup table's grid points (THC, sections 4.1 and 4.3), float32."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs import _random
from gradplane.codecs._base import Codes, Floats, Table

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)

Cells = tuple[Codes, Floats, Floats]
_Value = TypeVar("_Value", bound=np.generic)


def cells(table: Table) -> Cells:
    """Return, for each unit cell of the grid, the code below, its value and the gap to the next."""
    values = np.array(table)
    below = np.searchsorted(values, np.arange(values[-1]), side="right") - 1
    low = values[below].astype(np.float32)
    gap = np.diff(values)[below].astype(np.float32)
    return below.astype(np.uint8), low, gap


@njit(cache=True, nogil=True)
def _quantise(y, below, low, gap, key, first, out):  # type: ignore[no-untyped-def]
    cells = below.size
    half, top = np.float32(cells) / np.float32(2), np.float32(cells)
    for start in range(0, y.size, 64):
        base = key + np.uint64(first + start + 1) * _GOLDEN
        some, codes = y[start : start + 64], out[start : start + 64]
        for i in range(some.size):
            value = min(max(some[i] + half, np.float32(0)), top)
            cell = np.uint32(min(np.int32(value), np.int32(cells - 1)))
            word = _mix(base + np.uint64(i) * _GOLDEN)
            u = np.float32(np.int32(word >> np.uint64(40))) * np.float32(2.0**-24)
            # u < fraction without a division: value - low is exact, and u * gap stays below gap
            codes[i] = below[cell] + np.uint8(u * gap[cell] < value - low[cell])


def quantise(y: Floats, cells: Cells, key: int, first: int) -> Codes:
    """Return codes, uint8[y.size], of grid positions y, from the grid's middle and clamped to it.

    Lane i goes up to the next table value iff u < fraction, u the top 24 bits of word first + i.
    """
    out = np.empty(y.size, np.uint8)
    _quantise(y, *cells, np.uint64(key), np.int64(first), out)
    return out


@njit(cache=True, nogil=True)
def _look_up(codes, values, out):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        out[i] = values[codes[i]]


def look_up(codes: Codes, values: npt.NDArray[_Value]) -> npt.NDArray[_Value]:
    """Return values[codes], [codes.size], of codes below values.size."""
    out = np.empty(codes.size, values.dtype)
    _look_up(codes, values, out)
    return out


def centre(
    sums: npt.NDArray[np.integer[Any]], count: int | npt.NDArray[np.integer[Any]], granularity: int
) -> Floats:
    """Return the means of summed table values, in half steps from the middle; 0 at count 0."""
    out = np.empty(sums.size, np.float32)
    workers, width = np.asarray(count, np.float32), np.float32(granularity)
    if workers.ndim == 0:
        _centre_all(sums, np.float32(workers), width, out)
    else:
        _centre_each(sums, workers, width, out)
    return out


@njit(cache=True, nogil=True)
def _centre_all(sums, workers, width, out):  # type: ignore[no-untyped-def]
    low = width * workers
    for i in range(sums.size):
        total = np.float32(2) * np.float32(sums[i]) - low
        out[i] = total / workers if workers > 0 else np.float32(0)


@njit(cache=True, nogil=True)
def _centre_each(sums, workers, width, out):  # type: ignore[no-untyped-def]
    for i in range(sums.size):
        total = np.float32(2) * np.float32(sums[i]) - width * workers[i]
        out[i] = total / workers[i] if workers[i] > 0 else np.float32(0)
