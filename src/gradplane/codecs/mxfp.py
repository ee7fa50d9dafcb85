"""OCP's microscaling floating-point formats (MX, version 1.0, 2023): MXFP8, MXFP6 and MXFP4.

32 values share a scale 2^e, e = floor(log2 of the largest magnitude) - emax, a byte e + 127 (E8M0);
each value is an element of 8, 6 or 4 bits times it (sections 5.1 to 5.3 and 6.3).
"""

import math
from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bits
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_vector

BLOCK = 32
_NAN = 255  # the scale that stands for no number


@dataclass(frozen=True)
class Element:
    """A float of a sign, `exponent` and `mantissa` bits; largest: the magnitude's highest code that
    is a number."""

    exponent: int
    mantissa: int
    largest: int

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """The number that is subtracted from the exponent's field."""
        return (1 << self.exponent - 1) - 1

    @property
    def emax(self) -> int:
        """The exponent of the largest number."""
        return (self.largest >> self.mantissa) - self.bias

    def values(self) -> Floats:
        """Return what each code stands for, float32[2^bits]; NaN and infinities as NaN."""
        magnitudes = np.arange(1 << self.bits - 1)
        field, fraction = magnitudes >> self.mantissa, magnitudes % (1 << self.mantissa)
        units = fraction + (field > 0) * (1 << self.mantissa)
        found = units * 2.0 ** (np.maximum(field, 1) - self.bias - self.mantissa)
        found[self.largest + 1 :] = np.nan
        return np.concatenate([found, -found]).astype(np.float32)


ELEMENTS = {
    "e5m2": Element(5, 2, largest=0x7B),
    "e4m3": Element(4, 3, largest=0x7E),
    "e3m2": Element(3, 2, largest=0x1F),
    "e2m3": Element(2, 3, largest=0x1F),
    "e2m1": Element(2, 1, largest=0x7),
}


@njit(cache=True, nogil=True)
def _scales(x, emax, scales):  # type: ignore[no-untyped-def]
    """Write each block's scale; 0 for one of zeros."""
    for b in range(scales.size):
        most = np.float32(0)
        for i in range(b * BLOCK, min((b + 1) * BLOCK, x.size)):
            most = max(most, abs(x[i]))
        scales[b] = max(math.frexp(most)[1] - 1 - emax + 127, 0) if most > 0 else 0


@njit(cache=True, nogil=True)
def _round(x, scales, mantissa, bias, largest, sign, out):  # type: ignore[no-untyped-def]
    """Write each value's code: the nearest element, ties to even, none beyond the largest."""
    words = x.view(np.uint32)
    drop = np.uint32(23 - mantissa)
    half = np.uint32((1 << (22 - mantissa)) - 1)
    for b in range(scales.size):
        least = np.int64(scales[b]) + 1 - bias  # float32's exponent field of the first normal code
        base = (least - 1) << mantissa
        per_unit = math.ldexp(1.0, 127 + mantissa - least)
        for i in range(b * BLOCK, min((b + 1) * BLOCK, x.size)):
            magnitude = words[i] & np.uint32(0x7FFFFFFF)
            field = np.int64(magnitude >> np.uint32(23))
            if field >= max(least, 1):
                odd = (magnitude >> drop) & np.uint32(1)
                code = np.int64((magnitude + half + odd) >> drop) - base
            elif least >= 1 or magnitude == 0:
                code = np.int64(np.rint(np.float64(abs(x[i])) * per_unit))
            else:
                code = _below_float32(np.float64(abs(x[i])), least - 127, mantissa)
            out[i] = min(code, largest) | (sign if words[i] >> np.uint32(31) else 0)


@njit(cache=True, nogil=True)
def _below_float32(magnitude, least, mantissa):  # type: ignore[no-untyped-def]
    """Return the code of a number below 2^-126 whose element may be normal; least: the exponent of
    the first normal one."""
    exponent = max(math.frexp(magnitude)[1] - 1, least)
    units = np.int64(np.rint(math.ldexp(magnitude, mantissa - exponent)))
    return ((exponent - least) << mantissa) + units


@njit(cache=True, nogil=True)
def _values(codes, scales, values, out):  # type: ignore[no-untyped-def]
    for b in range(scales.size):
        exponent = np.int64(scales[b]) - 127
        scale = np.float32(math.ldexp(1.0, exponent))  # type: ignore[arg-type]
        for i in range(b * BLOCK, min((b + 1) * BLOCK, out.size)):
            out[i] = values[codes[i]] * scale


@dataclass(frozen=True)
class MXFP(Codec):
    """Elements "e5m2", "e4m3" (MXFP8), "e3m2", "e2m3" (MXFP6) or "e2m1" (MXFP4); 1 byte a block.

    Rounds to nearest, ties to even. What exceeds the largest element becomes it: a block's largest
    value may lose an eighth of itself, with e2m3 a sixteenth, with e2m1 a quarter. Else the error
    is at most max(|x|, 2^(e + 1 - bias)) / 2^(mantissa bits + 1). Deterministic. Bytes: the blocks'
    scales, then the elements without gaps, the first in the lowest bits. The last block may have
    fewer values.
    """

    element: str = "e4m3"

    def __post_init__(self) -> None:
        if self.element not in ELEMENTS:
            known = ", ".join(f'"{name}"' for name in ELEMENTS)
            raise CodecError(f"element must be one of {known}, got {self.element!r}")

    @property
    def _element(self) -> Element:
        return ELEMENTS[self.element]

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return _blocks(n) + _bits.packed_size(n, self._element.bits)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        kind = self._element
        scales, codes = np.empty(_blocks(x.size), np.uint8), np.empty(x.size, np.uint8)
        _scales(x, kind.emax, scales)
        sign = 1 << kind.bits - 1
        _round(x, scales, kind.mantissa, kind.bias, kind.largest, sign, codes)
        return scales.tobytes() + _bits.pack(codes, kind.bits), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        bits, count = self._element.bits, _blocks(n)
        reader = Reader(data)
        scales = reader.array("u1", count, f"{count} scales")
        packed = reader.array("u1", _bits.packed_size(n, bits), f"elements of {n} values")
        reader.end()
        for b in np.flatnonzero(scales == _NAN)[:1]:
            raise CodecError(f"the scale of block {b} is NaN")
        out = np.empty(n, np.float32)
        _values(_bits.unpack(packed, n, bits), scales, self._element.values(), out)
        return check_vector(out)


def _blocks(n: int) -> int:
    return -(-n // BLOCK)
