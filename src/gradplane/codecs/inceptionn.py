"""INCEPTIONN's lossy compression (MICRO 2018): each value gets the bytes its exponent calls for.

With e the IEEE 754 exponent (127 for 1.0), k the bound, low = 127 - k, middle = low + ceil(k / 2):

    tag  exponent              bytes  content
    3    127 <= e              4      the float32 as it is
    2    middle <= e < 127     2      sign, then magnitude bits of weight 2^-1 ... 2^-15
    1    low <= e < middle     1      sign, then bits of weight 2^(middle-128) ... 2^(middle-134)
    0    e < low               0      nothing: +0

Eight values make a burst: their tags as 16 bits (value i's in bits 2i + 1 and 2i), then their
vectors in order; all big-endian. The last burst is filled up with tag 0.
"""

from dataclasses import dataclass

from gradplane.codecs import _bursts
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Context,
    Floats,
    State,
    check_float32,
    check_int,
    check_vector,
)
from gradplane.codecs._buffers import to_bytes
from gradplane.codecs._network_limits import ERROR_BOUNDS


@dataclass(frozen=True)
class Inceptionn(Codec):
    """Absolute error below 2^-bound (6, 8 or 10) per value; none for magnitudes of 1 or more.

    Magnitudes are truncated, never raised, so the error is towards zero: biased. The error below 1
    is under 2^-15 for tag 2, and for tag 1 under 2^-10, 2^-11 and 2^-12 at bounds 6, 8 and 10. From
    2 to 34 bits a value. With `nonfinite` NaN and infinity pass as tag 3, bit for bit, as in the
    network; without it they are refused. Source: the paper's algorithms 2 and 3.
    """

    bound: int = 10
    nonfinite: bool = False

    def __post_init__(self) -> None:
        if check_int("bound", self.bound, 6, 10) not in ERROR_BOUNDS:
            raise CodecError(f"bound must be 6, 8 or 10, got {self.bound}")
        if not isinstance(self.nonfinite, bool):
            raise CodecError(f"nonfinite must be True or False, got {self.nonfinite!r}")

    def max_size(self, n: int) -> int:
        """Return 2 bytes for each 8 values, and 4 for each value."""
        return 2 * (-(-n // _bursts.BURST)) + 4 * n

    def _admit(self, x: Floats) -> Floats:
        return check_float32(x) if self.nonfinite else check_vector(x)

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return to_bytes(_bursts.encode(x, self.bound)), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        return self._admit(_bursts.decode(data, n, self.bound))
