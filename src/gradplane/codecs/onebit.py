"""1-bit quantisation with minimum squared error (Seide et al. 2014; "MQE 1-bit int": 3LC, 4.2)."""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _bitmap
from gradplane.codecs._base import Codec, CodecError, Context, Floats, Reader, State


@njit(cache=True, nogil=True)
def _sums(x):  # type: ignore[no-untyped-def]
    """Sum the values not below 0, and those below, in float64, in eight interleaved sums each."""
    upper, lower = np.zeros(8), np.zeros(8)
    for i in range(0, x.size - 7, 8):
        for j in range(8):
            value = np.float64(x[i + j])
            upper[j] += max(value, 0.0)
            lower[j] += min(value, 0.0)
    for i in range(x.size - x.size % 8, x.size):
        upper[i % 8] += max(np.float64(x[i]), 0.0)
        lower[i % 8] += min(np.float64(x[i]), 0.0)
    return upper.sum(), lower.sum()


@dataclass(frozen=True)
class OneBit(Codec):
    """One bit per value, 1 for those below 0; each side decodes to its mean.

    No other two levels give that split a smaller squared error, which is at most ||x||^2.
    Biased: the paper wraps it in error feedback, here ErrorFeedback. Bytes: mean of the values not
    below 0 and mean of those below (float32, 0 if there are none), then value i in bit i mod 8 of
    byte i div 8.
    """

    by_tensor = True

    def max_size(self, n: int) -> int:
        """Return 8 bytes, and 1 for each 8 values."""
        return 8 + _bitmap.size(n)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        below = x < 0
        count = int(np.count_nonzero(below))
        upper, lower = _sums(x)
        bits = np.packbits(below, bitorder="little").tobytes()
        means = [upper / max(x.size - count, 1), lower / max(count, 1)]
        return np.array(means, "<f4").tobytes() + bits, context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        upper = reader.magnitude("mean of the values not below 0")
        lower = np.float32(reader.array("<f4", 1, "mean of the values below 0")[0])
        if not -np.inf < lower <= 0:
            raise CodecError(f"corrupted: mean of the values below 0 = {lower}")
        below = _bitmap.read(reader, n)
        reader.end()
        out = np.empty(n, np.float32)
        _bitmap.choose(below, upper, lower, out)
        return out
