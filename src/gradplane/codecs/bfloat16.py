"""bfloat16: the upper half of a float32, rounded to nearest, ties to even; little-endian.

The format is Google's for machine learning: float32's exponent range with 8 significant bits.
"""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State, check_vector

_INFINITY = 0x7F80


@njit(cache=True, nogil=True)
def _round(bits, out):  # type: ignore[no-untyped-def]
    """Round each value; return the greatest magnitude's bits."""
    greatest = np.uint16(0)
    for i in range(bits.size):
        odd = (bits[i] >> np.uint32(16)) & np.uint32(1)
        out[i] = (bits[i] + np.uint32(0x7FFF) + odd) >> np.uint32(16)
        greatest = max(greatest, out[i] & np.uint16(0x7FFF))
    return greatest


@dataclass(frozen=True)
class BFloat16(Codec):
    """Two bytes a value; relative error at most 2^-8, absolute at most 2^-134 below 2^-126.

    Deterministic; ties to even make it unbiased over symmetric data. CodecError for values that
    round to infinity (from 3.396e38 on).
    """

    def max_size(self, n: int) -> int:
        """Return 2 n."""
        return 2 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        halves = np.empty(x.size, np.uint16)
        if _round(x.view(np.uint32), halves) >= _INFINITY:
            index = int(np.argmax((halves & _INFINITY) == _INFINITY))
            raise CodecError(f"{x[index]} at index {index} is beyond bfloat16 (3.3895e38)")
        return halves.astype("<u2").tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        halves = reader.array("<u2", n, f"{n} bfloat16 values")
        reader.end()
        return check_vector((halves.astype(np.uint32) << np.uint32(16)).view(np.float32))
