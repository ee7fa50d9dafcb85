"""The randomized Hadamard transform (THC, section 5.1), float32, Sylvester order.

The butterflies of stage h = 1, 2, 4, ... add and subtract values h apart. Each sum is one float32
addition, so blocking changes the speed and no bit of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradplane._kernels import intrinsic, njit
from gradplane._lazy_names import LazyModule
from gradplane.codecs import _random
from gradplane.codecs._base import Floats

if TYPE_CHECKING:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
else:
    ir, types, cgutils = map(LazyModule, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils"))

WIDTH = 8  # float32 values in a vector
_SIGN = 1 << 31


def _butterflies(vectors: int, short: bool) -> Callable[..., None]:
    """Return a function (a: float32[n], i, h) of kernels, on the values a[i + k h : i + k h + 8].

    It applies stages h, 2 h, ..., vectors / 2 * h to them; before these, if `short`, the stages 1,
    2 and 4.
    """

    @intrinsic
    def apply(typing: Any, a: Any, i: Any, h: Any) -> Any:
        return types.void(a, types.int64, types.int64), generate

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, first, step = arguments
        proxy = cgutils.create_struct_proxy(signature.args[0])  # type: ignore[no-untyped-call]
        data = proxy(context, builder, value=array).data
        places = [first]
        for _ in range(vectors - 1):
            places.append(builder.add(places[-1], step))
        floats = ir.VectorType(ir.FloatType(), WIDTH)
        pointers = [
            builder.bitcast(builder.gep(data, [place]), floats.as_pointer()) for place in places
        ]
        values = [builder.load(pointer, align=4) for pointer in pointers]
        if short:
            for stage in (1, 2, 4):
                values = [_within(builder, value, stage) for value in values]
        for value, pointer in zip(_across(builder, values), pointers, strict=True):
            builder.store(value, pointer, align=4)
        return context.get_dummy_value()

    return apply


def _within(builder: ir.IRBuilder, value: Any, stage: int) -> Any:
    """Apply a stage to the values of one vector."""
    ints = ir.VectorType(ir.IntType(32), WIDTH)
    order = ir.Constant(ints, [k ^ stage for k in range(WIDTH)])
    partner = builder.shuffle_vector(value, value, order)
    # A difference is the sum with the sign changed, to the bit.
    signs = ir.Constant(ints, [_SIGN if k & stage else 0 for k in range(WIDTH)])
    flipped = builder.bitcast(builder.xor(builder.bitcast(value, ints), signs), value.type)
    return builder.fadd(partner, flipped)


def _across(builder: ir.IRBuilder, values: Sequence[Any]) -> Sequence[Any]:
    """Apply the stages between vectors: of distance 1, 2, 4, ..."""
    distance = 1
    while distance < len(values):
        after = list(values)
        for k in range(len(values)):
            if not k & distance:
                upper, lower = values[k], values[k + distance]
                after[k] = builder.fadd(upper, lower)
                after[k + distance] = builder.fsub(upper, lower)
        values, distance = after, 2 * distance
    return values


first_six = _butterflies(8, True)  # with h = 8: the stages 1 to 32 of 64 values
three = _butterflies(8, False)
two = _butterflies(4, False)
one = _butterflies(2, False)


_ROW = 16384  # floats that go through the short stages while they are in the cache
_BLOCK = 64  # floats that go through the first six stages in registers
_GOLDEN = _random.GOLDEN
_LIMIT = np.float32(2.0**100)
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
    """Set out to D x * scale, clamped to +-limit, a float32; D: the diagonal of the key's signs."""
    for start in range(0, x.size, 64):
        key += _GOLDEN
        word = _mix(key)
        some, flipped = x[start : start + 64], out[start : start + 64]
        for i in range(some.size):
            factor = -scale if (word >> np.uint64(i)) & np.uint64(1) else scale
            flipped[i] = min(max(np.float32(some[i] * factor), -limit), limit)


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
        _flip(some, key + np.uint64(start // 64) * _GOLDEN, scale, _LIMIT, out[start:stop])
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
    _flip(y[: out.size], np.uint64(key), scale, np.finfo(np.float32).max, out)
