"""One bit a value: value i in bit i mod 8 of byte i div 8, unused bits 0."""

import numpy as np
import numpy.typing as npt

from gradplane.codecs._base import CodecError
from gradplane.codecs._reader import Reader


def to_bitmap(flags: npt.NDArray[np.bool_]) -> bytes:
    """The bytes of bool[n]."""
    return np.packbits(flags, bitorder="little").tobytes()


def read_bitmap(reader: Reader, n: int) -> npt.NDArray[np.bool_]:
    """bool[n] from the reader's next bytes; CodecError if unused bits are set."""
    size = -(-n // 8)
    bits = np.unpackbits(reader.array("u1", size, f"bitmap of {n} values"), bitorder="little")
    if bits[n:].any():
        raise CodecError(f"corrupted: bits beyond the {n} of the bitmap are not 0")
    return bits[:n].view(np.bool_)
