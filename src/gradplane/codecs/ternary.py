"""Stochastic 3-value quantisation with base-3^5 encoding ("Stoch 3-value b-3-5": 3LC, section 4.2).

TernGrad's quantiser without clipping, in 1.6 bits a value instead of 2.
"""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _base3, _random
from gradplane.codecs._base import Codec, Context, Floats, Reader, State
from gradplane.codecs._buffers import to_bytes
from gradplane.codecs._magnitudes import largest
from gradplane.codecs._random import key

_GOLDEN = _random.GOLDEN
_mix = njit(inline="always")(_random.mix)


@njit(cache=True, nogil=True)
def _draw(x, m, key, digits):  # type: ignore[no-untyped-def]
    """Draw digit 1 + sign(x) with probability |x| / m, else 1; both products are exact."""
    for i in range(x.size):
        word = _mix(key + np.uint64(i + 1) * _GOLDEN)
        u = np.float64(np.int64(word >> np.uint64(40)))
        value = np.float64(x[i])
        taken = np.uint8(u * m < abs(value) * 2.0**24)
        digits[i] = np.uint8(1) + taken if value > 0 else np.uint8(1) - taken


@dataclass(frozen=True)
class Ternary(Codec):
    """Values become m sign(x) with probability |x| / m, else 0; m = max |x|. Unbiased.

    u < |x| / m decides, u the top 24 bits of the value's random word. Error below m. Bytes: m
    (float32), digits (0, 1, 2 for -m, 0, m) five a byte (`_base3`).
    """

    by_tensor = True
    _refuses = True

    def max_size(self, n: int) -> int:
        """Return 4 bytes, and 1 for each 5 values."""
        return 4 + _base3.size(n)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        m, digits = largest(x), np.empty(x.size, np.uint8)
        _draw(x, float(m), np.uint64(key(context.seed, context.worker, "rounding")), digits)
        return m.astype("<f4").tobytes() + to_bytes(_base3.pack(digits)), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        m = reader.magnitude("m")
        size = _base3.size(n)
        groups = reader.array("u1", size, f"{size} groups of 5 values")
        reader.end()
        return _base3.values(groups, n, m)
