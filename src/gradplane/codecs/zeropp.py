"""ZeRO++ (Wang et al., arXiv 2306.10209): integers of 8 or 4 bits, a scale for each block.

The scale is the symmetric one of DeepSpeed: a block's largest magnitude is 2^(bits - 1) steps.
"""

from dataclasses import dataclass

from gradplane.codecs import _blocks
from gradplane.codecs._base import Codec, Context, Floats, State, check_int, check_vector


@dataclass(frozen=True)
class ZeroPP(Codec):
    """Codes from -2^(bits - 1) to 2^(bits - 1) - 1 steps, to nearest, ties to even; 4 <= bits <= 8.

    block: the values that share a step, 1 to 2^31; DeepSpeed makes as many blocks as the longer
    side of a matrix. Error at most half a step, a whole one where x is a block's largest magnitude
    and positive, which has no code. Deterministic. Bytes: the steps (float32), then the codes plus
    2^(bits - 1) without gaps, the first in the lowest bits."""

    bits: int = 4
    block: int = 256

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 4, 8)
        check_int("block", self.block, 1, 2**31)

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        return _blocks.size(n, self.bits, self.block)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        levels = 1 << self.bits - 1
        return _blocks.encode(x, self.bits, self.block, levels, key=None), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        return check_vector(_blocks.decode(data, n, self.bits, self.block))
