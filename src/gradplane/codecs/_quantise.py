"""Stochastic quantisation to a lookup table's grid points (THC, sections 4.1 and 4.3), float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gradplane import _splitmix64
from gradplane._kernels import intrinsic, njit
from gradplane._lazy_names import LazyModule
from gradplane.codecs import _random
from gradplane.codecs._base import Codes, Floats, Table

if TYPE_CHECKING:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
else:
    ir, types, cgutils = map(LazyModule, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils"))

_GOLDEN = _random.GOLDEN
_WIDTH = 8  # lanes that are rounded at once
_MASK = (1 << 64) - 1

Cells = npt.NDArray[np.int32]
_Value = TypeVar("_Value", bound=np.generic)


def cells(table: Table) -> Cells:
    """Return, for each unit cell of the grid, its value below (bits 0 to 11), the gap to the next
    one (12 to 23) and the code below (24 to 31)."""
    values = np.array(table)
    below = np.searchsorted(values, np.arange(values[-1]), side="right") - 1
    parts = below << 24 | np.diff(values)[below] << 12 | values[below]
    found: Cells = parts.astype(np.uint32).view(np.int32)
    return found


@intrinsic
def _eight(typing: Any, y: Any, cells: Any, word: Any, i: Any, out: Any) -> Any:
    """Round y[i : i + 8] to codes, out[i : i + 8]; word: the argument of lane i's random word."""
    return types.void(y, cells, types.uint64, types.int64, out), _round_eight


def _round_eight(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    def data(place: int) -> Any:
        proxy = cgutils.create_struct_proxy(signature.args[place])  # type: ignore[no-untyped-call]
        return proxy(context, builder, value=arguments[place])

    lane, words = _Lanes(builder), arguments[2]
    y, table, out = data(0), data(1), data(4)
    count = builder.trunc(builder.extract_value(table.shape, 0), ir.IntType(32))
    top = builder.sitofp(count, ir.FloatType())
    start = builder.gep(y.data, [arguments[3]])
    value = builder.load(builder.bitcast(start, lane.floats.as_pointer()), align=4)
    half = builder.fmul(top, ir.Constant(ir.FloatType(), 0.5))
    value = lane.largest(builder.fadd(value, lane.all(half)), lane.real(0))
    value = lane.smallest(value, lane.all(top))
    last = lane.all(builder.sub(count, ir.Constant(ir.IntType(32), 1)))
    cell = builder.fptosi(value, lane.ints)
    cell = builder.select(builder.icmp_signed("<", cell, last), cell, last)
    found = lane.looked_up(table.data, cell)
    twelve = lane.whole(4095)
    low = builder.sitofp(builder.and_(found, twelve), lane.floats)
    gap = builder.and_(builder.lshr(found, lane.whole(12)), twelve)
    gap = builder.sitofp(gap, lane.floats)
    # u < fraction without a division: value - low is exact, and u * gap stays below gap
    chance = builder.fmul(lane.uniforms(words), gap)
    up = builder.fcmp_ordered("<", chance, builder.fsub(value, low))
    code = builder.add(builder.lshr(found, lane.whole(24)), builder.zext(up, lane.ints))
    place = builder.gep(out.data, [arguments[3]])
    octets = ir.VectorType(ir.IntType(8), _WIDTH)
    builder.store(builder.trunc(code, octets), builder.bitcast(place, octets.as_pointer()), align=1)
    return context.get_dummy_value()


class _Lanes:
    """Operations on eight lanes at once."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self._builder = builder
        self.floats = ir.VectorType(ir.FloatType(), _WIDTH)
        self.ints = ir.VectorType(ir.IntType(32), _WIDTH)

    def real(self, value: float) -> Any:
        """Return a float32 in each lane."""
        return ir.Constant(self.floats, [value] * _WIDTH)

    def whole(self, value: int, bits: int = 32) -> Any:
        """Return an integer in each lane."""
        return ir.Constant(ir.VectorType(ir.IntType(bits), _WIDTH), [value] * _WIDTH)

    def all(self, value: Any) -> Any:
        """Return a number that is in each lane."""
        kind = ir.VectorType(value.type, _WIDTH)
        one = self._builder.insert_element(
            ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
        )
        return self._builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), self.whole(0))

    def largest(self, one: Any, other: Any) -> Any:
        """Return the larger number of each lane."""
        return self._builder.select(self._builder.fcmp_ordered(">", one, other), one, other)

    def smallest(self, one: Any, other: Any) -> Any:
        """Return the smaller number of each lane."""
        return self._builder.select(self._builder.fcmp_ordered("<", one, other), one, other)

    def looked_up(self, table: Any, index: Any) -> Any:
        """Return table[index] of each lane, which no machine does faster than one by one."""
        builder, found = self._builder, ir.Constant(self.ints, ir.Undefined)
        for lane in (ir.Constant(ir.IntType(32), k) for k in range(_WIDTH)):
            place = builder.zext(builder.extract_element(index, lane), ir.IntType(64))
            found = builder.insert_element(found, builder.load(builder.gep(table, [place])), lane)
        return found

    def uniforms(self, word: Any) -> Any:
        """Return the top 24 bits of SplitMix64's words, as multiples of 2^-24; word: the argument
        of the first. The generator's last step changes none of these bits."""
        builder = self._builder
        steps = [k * _splitmix64.GOLDEN & _MASK for k in range(_WIDTH)]
        z = builder.add(self.all(word), ir.Constant(ir.VectorType(word.type, _WIDTH), steps))
        for shift, factor in _splitmix64.STEPS:
            z = builder.xor(z, builder.lshr(z, self.whole(shift, 64)))
            z = builder.mul(z, self.whole(factor, 64))
        top = builder.trunc(builder.lshr(z, self.whole(40, 64)), self.ints)
        return builder.fmul(builder.sitofp(top, self.floats), self.real(2.0**-24))


@njit(cache=True, nogil=True)
def _quantise(y, cells, key, first, out):  # type: ignore[no-untyped-def]
    word = key + np.uint64(first + 1) * _GOLDEN
    whole = y.size - y.size % _WIDTH
    for i in range(0, whole, _WIDTH):
        _eight(y, cells, word, i, out)
        word += np.uint64(_WIDTH) * _GOLDEN
    if whole < y.size:
        rest, codes = np.zeros(_WIDTH, np.float32), np.empty(_WIDTH, np.uint8)
        for i in range(whole, y.size):
            rest[i - whole] = y[i]
        _eight(rest, cells, word, 0, codes)
        for i in range(whole, y.size):
            out[i] = codes[i - whole]


def quantise(y: Floats, cells: Cells, key: int, first: int) -> Codes:
    """Return codes, uint8[y.size], of grid positions y, from the grid's middle and clamped to it.

    Lane i goes up to the next table value iff u < fraction, u the top 24 bits of word first + i.
    """
    out = np.empty(y.size, np.uint8)
    _quantise(y, cells, np.uint64(key), np.int64(first), out)
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


@njit(cache=True, nogil=True)
def _look_up_pairs(fields, pairs, out):  # type: ignore[no-untyped-def]
    for i in range(fields.size):
        out[i] = pairs[fields[i]]


def look_up_pairs(fields: Codes, values: Floats) -> Floats:
    """Return the values, of 16, that bytes with two codes of 4 bits stand for."""
    out = np.empty(fields.size, np.uint64)
    _look_up_pairs(fields, pairs(values), out)
    return out.view(np.float32)


@njit(cache=True, nogil=True)
def _add_looked_up(codes, values, sums):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        sums[i] += values[codes[i]]


def add_looked_up(codes: Codes, values: npt.NDArray[Any], sums: npt.NDArray[Any]) -> None:
    """Add values[codes] to sums, of the same type as values, in place."""
    _add_looked_up(codes, values, sums)


def pairs(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for each byte of two 4-bit codes, their two values as one integer of twice the width.

    Added to two neighbouring sums seen as such an integer, they are added to each: sums that fit
    their type carry nothing over. values: those of sixteen codes."""
    both = np.stack([np.repeat(values, 16), np.tile(values, 16)], axis=1)
    return both.view(np.dtype(f"u{2 * values.itemsize}")).reshape(-1)


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
