"""8-bit integers on [-127, 127], which 3LC is compared with ("8-bit int", section 4.2)."""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State
from gradplane.codecs._magnitudes import largest


@njit(cache=True, nogil=True)
def _quantise(x, m, codes):  # type: ignore[no-untyped-def]
    """Quantise in float64: 127 x is exact, and the quotient's rounding cannot make a tie."""
    for i in range(x.size):
        codes[i] = np.int8(np.rint(127.0 * np.float64(x[i]) / m))


@njit(cache=True, nogil=True)
def _dequantise(codes, m, out):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        out[i] = np.float32(np.float64(codes[i]) * m / 127.0)


@dataclass(frozen=True)
class Int8(Codec):
    """Codes round(127 x / m), ties to even, m = max |x|; -128 is not used. Error at most m / 254.

    Deterministic, so biased below that. Bytes: m (float32), n codes (int8)."""

    _refuses = True

    def max_size(self, n: int) -> int:
        """Return 4 + n."""
        return 4 + n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        m, codes = largest(x), np.zeros(x.size, np.int8)
        if m > 0:
            _quantise(x, float(m), codes)
        return m.astype("<f4").tobytes() + codes.tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        m = reader.magnitude("m")
        codes = reader.array("i1", n, f"{n} codes")
        reader.end()
        if n and codes.min() < -127:
            raise CodecError(f"corrupted: code -128 at index {int(np.argmin(codes))}")
        out = np.empty(n, np.float32)
        _dequantise(codes, float(m), out)
        return out
