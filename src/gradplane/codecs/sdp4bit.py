"""SDP4Bit's gradients (Jia et al., NeurIPS 2024, arXiv 2410.15526): a Hadamard transform of each 32
values, then integers that are rounded stochastically.

Between nodes they have 4 bits, within a node 8. Group sizes and scale are those of the authors'
code: 128 values, of which the largest magnitude is 2^(bits - 1) - 1 steps.
"""

from dataclasses import dataclass

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs import _blocks, _random
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    State,
    check_int,
    check_vector,
)

ORDER = 32  # values of a transform


@njit(cache=True, nogil=True)
def _transform(x):  # type: ignore[no-untyped-def]
    """Transform each 32 values in place, without a factor: stages 1, 2, 4, 8 and 16."""
    for start in range(0, x.size, ORDER):
        for stage in (1, 2, 4, 8, 16):
            for i in range(start, start + ORDER):
                if i & stage == 0:
                    low, high = x[i], x[i + stage]
                    x[i], x[i + stage] = low + high, low - high


@dataclass(frozen=True)
class SDP4Bit(Codec):
    """Unbiased. 2 <= bits <= 8; block: the values that share a step, a multiple of 32 to 2^31.

    With y the transform, its error is below a step in each value, and |x - decoded|^2 is 1/32 of
    the squares of these. Bytes: the steps (float32), then the codes plus 2^(bits - 1) without gaps,
    the first in the lowest bits; the vector is padded by zeros to a multiple of 32. CodecError for
    values above 1e37, whose sums may be beyond float32."""

    bits: int = 4
    block: int = 128

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 2, 8)
        if check_int("block", self.block, ORDER, 2**31) % ORDER:
            raise CodecError(f"block must be a multiple of {ORDER}, got {self.block}")

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return _blocks.size(_padded(n), self.bits, self.block)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        if x.size and np.abs(x).max() > 1e37:
            i = int(np.abs(x).argmax())
            raise CodecError(f"{x[i]} at index {i} is beyond 1e37: scale the vector down")
        values = np.zeros(_padded(x.size), np.float32)
        values[: x.size] = x
        _transform(values)
        key = _random.key(context.seed, context.worker, "rounding")
        levels = (1 << self.bits - 1) - 1
        return _blocks.encode(values, self.bits, self.block, levels, key), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        values = _blocks.decode(data, _padded(n), self.bits, self.block)
        _transform(values)
        return check_vector(values[:n] / np.float32(ORDER))


def _padded(n: int) -> int:
    return -(-n // ORDER) * ORDER
