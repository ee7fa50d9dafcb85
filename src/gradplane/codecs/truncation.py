"""Plain truncation: the low bits of each float32 are dropped (INCEPTIONN's comparison, Fig. 14).

The bytes that are left follow each other, the most significant first, as ADT's do.
"""

from dataclasses import dataclass

from gradplane.codecs import _bytepack
from gradplane.codecs._base import Codec, CodecError, Context, Floats, State, check_int

_DROPS = (8, 16, 24)


@dataclass(frozen=True)
class Truncation(Codec):
    """Drops 8, 16 or 24 low bits of each value and sends the others; towards zero, so biased.

    Relative error of normal values below 2^-15 (8) and 2^-7 (16). 24 drops the lowest bit of the
    exponent, too, and leaves more than a quarter of the value.
    """

    drop: int = 16

    _refuses = True

    def __post_init__(self) -> None:
        if check_int("drop", self.drop, 8, 24) not in _DROPS:
            raise CodecError(f"drop must be 8, 16 or 24, got {self.drop}")

    def max_size(self, n: int) -> int:
        """Return (32 - drop) / 8 bytes for each value."""
        return self._keep * n

    @property
    def _keep(self) -> int:
        return 4 - self.drop // 8

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return _bytepack.pack(x, self._keep), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        return _bytepack.unpack(data, n, self._keep)
