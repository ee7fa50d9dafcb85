"""Natural compression (Horvath et al., 2019/2022): stochastic rounding to a power of two.

|x| in [2^a, 2^(a+1)] goes up with probability |x| / 2^a - 1. A sign and an exponent
are sent: the mantissa becomes a probability.
"""

import math
from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bits, _random
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_int
from gradplane.codecs._bits import Codes

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)
_LEAST, _GREATEST = -149, 127  # exponents of float32's powers of two


@njit(cache=True, nogil=True)
def _level(magnitude, u):  # type: ignore[no-untyped-def]
    """Return the level of a magnitude in units of the lowest power; u is uniform in [0, 1)."""
    level, power = np.int64(0), 0.0
    if magnitude >= 1:
        level = np.int64(math.frexp(magnitude)[1])
        power = 2.0 ** (level - 1)
    return level + np.int64(u * max(power, 1.0) < magnitude - power)


@njit(cache=True, nogil=True)
def _round(x, bits, lowest, key, negative, out):  # type: ignore[no-untyped-def]
    """Round; level l stands for 2^(lowest - 1 + l), level 0 for 0; a bit marks negative values."""
    for i in range(x.size):
        word = _mix(key + np.uint64(i + 1) * _GOLDEN)
        level = np.int64(bits[i] >> 23 & 255) - 126 - lowest
        if level > max(0, -126 - lowest):  # a normal number: its exponent and mantissa as they are
            level += np.int64(word >> np.uint64(41)) < np.int64(bits[i] & 0x7FFFFF)
            out[i] = level + negative * np.int64(bits[i] >> 31)
        else:
            u = np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53
            level = _level(abs(np.float64(x[i])) * 2.0**-lowest, u)
            out[i] = level + (negative if level > 0 and x[i] < 0 else 0)


@dataclass(frozen=True)
class Natural(Codec):
    """2 to 9 `bits` per value: a sign and the exponent's distance from the greatest, or zero.

    The paper's 9 bits are a float32's sign and exponent; 8 are enough for 127 powers of two below
    the largest value, and 9 for 255. Values below the lowest power go to it or to 0, unbiased.
    Bytes: the greatest exponent (int16), then for each value a field of `bits` bits, no bits
    between them, the first in the lowest: level l in the low bits - 1 (0: zero, else 2^(greatest -
    2^(bits - 1) + 1 + l)), the sign in the highest.
    Unbiased; where no value is below the lowest power, E(x - y)^2 <= x^2 / 8 and |x - y| < |x|,
    and powers of two are exact. Values beyond 2^127 have no float32 power above: CodecError.
    """

    bits: int = 9

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 2, 9)

    @property
    def levels(self) -> int:
        """The number of powers of two."""
        return (1 << (self.bits - 1)) - 1

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return 2 + _bits.packed_size(n, self.bits)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        top = _exponent_above(x)
        codes = np.empty(x.size, np.uint8 if self.bits <= 8 else np.uint16)
        key = np.uint64(_random.key(context.seed, context.worker, "rounding"))
        lowest = top - self.levels + 1
        _round(x, x.view(np.uint32), lowest, key, self.levels + 1, codes)
        return top.to_bytes(2, "little", signed=True) + _bits.pack(codes, self.bits), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        top = int(reader.array("<i2", 1, "greatest exponent")[0])
        fields = reader.array("u1", _bits.packed_size(n, self.bits), f"codes of {n} values")
        reader.end()
        if not _LEAST <= top <= _GREATEST:
            raise CodecError(f"exponent {top} is not from {_LEAST} to {_GREATEST}")
        codes = _bits.unpack(fields, n, self.bits)
        for i in np.flatnonzero(codes == self.levels + 1)[:1]:
            raise CodecError(f"code {codes[i]} at index {i} is a negative zero")
        return self._values(top)[codes]

    def _values(self, top: int) -> Codes:
        """Return the value of each code, float32[2^bits]."""
        exponents = np.arange(top - self.levels + 1, top + 1, dtype=np.int32)
        magnitudes = np.concatenate([[0.0], np.ldexp(1.0, exponents)])
        return np.concatenate([magnitudes, -magnitudes]).astype(np.float32)


def _exponent_above(x: Floats) -> int:
    """Return the exponent of the least power of two that no value exceeds; -149 for zeros."""
    largest = float(np.abs(x).max(initial=0))
    if largest > 2.0**_GREATEST:
        index = int(np.abs(x).argmax())
        raise CodecError(f"{x[index]} at index {index} is beyond 2^127: scale the vector down")
    if largest == 0:
        return _LEAST
    mantissa, exponent = math.frexp(largest)
    return exponent - (mantissa == 0.5)
