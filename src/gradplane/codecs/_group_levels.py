"""DynamiQ's numbers of few bits (arXiv 2602.08923v3, section 3.3), for vectors and partial sums.

Each 16 values have a scale, a byte of the largest magnitude of their 256, and each value one of
2^(bits - 1) levels, which are denser near 0, and a sign. Scales and levels are rounded at random;
levels so that of `workers` who round with the same seed each has another part of [0, 1).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs import _bits, _random
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_vector

GROUP, SUPER = 16, 256
_EPSILON = {2: 0.23, 4: 0.18, 8: 0.1}  # of the authors' code; the text names none
_LEAST = 2.0**-118  # below it, steps of a scale would be coarse or denormal
_MOST = 0x7F7F  # bfloat16's largest number
_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@cache
def levels(bits: int) -> npt.NDArray[np.float64]:
    """Return f(e, r) = ((1 + 2 e^2)^r - 1) / ((1 + 2 e^2)^R - 1) for r = 0 ... R = 2^(bits-1) - 1.

    By multiplication alone, which is the same on every machine."""
    grown = [1.0]
    for _ in range(2 ** (bits - 1) - 1):
        grown.append(grown[-1] * (1 + 2 * _EPSILON[bits] ** 2))
    return np.array([(power - 1) / (grown[-1] - 1) for power in grown])


@njit(cache=True, nogil=True)
def _uniform(key, position):  # type: ignore[no-untyped-def]
    word = _mix(key + np.uint64(position + 1) * _GOLDEN)
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@njit(cache=True, nogil=True)
def _place(key, position, worker, workers):  # type: ignore[no-untyped-def]
    """Return a worker's place in a random order of all, the same order for equal key and position:
    the number of workers whose word is less than its own."""
    first = np.uint64(position) * np.uint64(workers) + np.uint64(1)
    own = _mix(key + (first + np.uint64(worker)) * _GOLDEN)
    before = 0
    for other in range(workers):
        if other != worker:
            word = _mix(key + (first + np.uint64(other)) * _GOLDEN)
            before += word < own or (word == own and other < worker)
    return before


@njit(cache=True, nogil=True)
def _largest(words, tops):  # type: ignore[no-untyped-def]
    """Write each 256 values' largest magnitude, rounded up to bfloat16."""
    for s in range(tops.size):
        most = np.uint32(0)
        for i in range(s * 256, min((s + 1) * 256, words.size)):
            most = max(most, words[i] & np.uint32(0x7FFFFFFF))
        tops[s] = (most + np.uint32(0xFFFF)) >> np.uint32(16)


@njit(cache=True, nogil=True)
def _round(x, tops, table, worker, workers, shared, own, scaling, scales, codes):  # type: ignore[no-untyped-def]
    """Write each 16 values' scale, and codes, of values whose largest are not 0.

    shared, own, scaling: keys of the workers' order, of a worker's part of its place, of scales."""
    negative = np.uint8(table.size)
    for g in range(scales.size):
        start, stop, top = g * 16, min(g * 16 + 16, x.size), np.float64(tops[g // 16])
        largest = 0.0
        for i in range(start, stop):
            largest = max(largest, abs(np.float64(x[i])))
        if largest == 0 or top == 0:
            scales[g] = 0
            codes[start:stop] = 0
            continue
        place = largest * 255.0 / top
        low = np.floor(place)
        scales[g] = np.int64(low) + (_uniform(scaling, g) < place - low)
        for i in range(start, stop):
            magnitude = abs(np.float64(x[i])) / largest
            r, above = 0, table.size - 1  # table[r] <= magnitude, and r is not the last
            while above - r > 1:
                middle = (r + above) // 2
                if table[middle] <= magnitude:
                    r = middle
                else:
                    above = middle
            share = (magnitude - table[r]) / (table[r + 1] - table[r])
            u = (_place(shared, i, worker, workers) + _uniform(own, i)) / workers
            code = np.uint8(r + (u < share or share >= 1))
            codes[i] = code | negative if code > 0 and x[i] < 0 else code


@njit(cache=True, nogil=True)
def _decode(codes, scales, tops, table, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        scale = np.float64(scales[i // 16]) * np.float64(tops[i // 256]) / 255.0
        value = table[codes[i] & (table.size - 1)] * scale
        out[i] = -value if codes[i] >= table.size else value


@dataclass(frozen=True)
class GroupLevels(Codec):
    """Unbiased, but for 256 values all below 3e-36, which become 0. bits: 2, 4 or 8.

    The error is below the scale, and a gap between levels times the scale: with s = m / 255 for the
    largest magnitude m of the 256, and g the largest of the 16, |x - y| < s + (g + s) gap, of gaps
    of 1, 0.16 and 0.022 with 2, 4 and 8 bits. Bytes: the largest magnitudes (bfloat16, rounded up),
    the scales (uint8), the codes without gaps, the first in the lowest bits: a level, and
    2^(bits - 1) more where the value is negative. CodecError beyond bfloat16 (3.3895e38)."""

    bits: int
    workers: int = 1

    unit = SUPER

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return 2 * -(-n // SUPER) + -(-n // GROUP) + _bits.packed_size(n, self.bits)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        words = np.empty(-(-x.size // SUPER), np.uint16)
        _largest(x.view(np.uint32), words)
        for s in np.flatnonzero(words > _MOST)[:1]:
            i = s * SUPER + int(np.abs(x[s * SUPER : (s + 1) * SUPER]).argmax())
            raise CodecError(f"{x[i]} at index {i} is beyond bfloat16 (3.3895e38)")
        words[_floats(words) < _LEAST] = 0
        scales, codes = np.empty(-(-x.size // GROUP), np.uint8), np.empty(x.size, np.uint8)
        worker = context.worker % self.workers
        keys: list[Any] = [
            np.uint64(_random.key(context.seed, self.bits, *parts))
            for parts in (("order",), (context.worker, "part"), (context.worker, "scale"))
        ]
        table = levels(self.bits)
        _round(x, _floats(words), table, worker, self.workers, *keys, scales, codes)
        data = words.astype("<u2").tobytes() + scales.tobytes() + _bits.pack(codes, self.bits)
        return data, context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        words = reader.array("<u2", -(-n // SUPER), f"largest magnitudes of {n} values")
        scales = reader.array("u1", -(-n // GROUP), f"scales of {n} values")
        packed = reader.array("u1", _bits.packed_size(n, self.bits), f"codes of {n} values")
        reader.end()
        tops = _floats(words)
        for s in np.flatnonzero(words > _MOST)[:1]:
            raise CodecError(f"{tops[s]}, the largest of super-group {s}, is not a magnitude")
        out = np.empty(n, np.float32)
        _decode(_bits.unpack(packed, n, self.bits), scales, tops, levels(self.bits), out)
        return check_vector(out)


def _floats(words: npt.NDArray[np.uint16]) -> Floats:
    """Return bfloat16's words as float32."""
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
