"""Packing of codes of 1 to 16 bits without gaps; the fields of `_packing` are the switch's.

Bit j of code i is bit i * width + j of the stream, and bit b of the stream is bit b mod 8 of byte
b div 8. The bits after the last code are 0.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError

Codes = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def _pack(codes, width, words):  # type: ignore[no-untyped-def]
    """Pack without a branch: write a word for every code, advance when it is full."""
    held, bits, at = np.uint64(0), np.int64(0), 0
    for i in range(codes.size):
        held |= np.uint64(codes[i]) << np.uint64(bits)
        bits += width
        words[at] = np.uint32(held)
        full = bits >> 5
        at += full
        held >>= np.uint64(full << 5)
        bits &= 31
    words[at] = np.uint32(held)


@njit(cache=True, nogil=True)
def _unpack(data, width, out):  # type: ignore[no-untyped-def]
    """Unpack, and return the bits that are left over after the last code."""
    held, bits, at = np.uint32(0), 0, 0
    mask = np.uint32((1 << width) - 1)
    for i in range(out.size):
        while bits < width:
            held |= np.uint32(data[at]) << np.uint32(bits)
            bits += 8
            at += 1
        out[i] = held & mask
        held >>= np.uint32(width)
        bits -= width
    return held


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes of `count` codes."""
    return (count * bits + 7) // 8


def pack(codes: Codes, bits: int) -> bytes:
    """Pack uint8 or uint16 codes below 2^bits into bytes."""
    size = packed_size(codes.size, bits)
    words = np.empty(size // 4 + 1, np.uint32)
    _pack(codes, bits, words)
    return words.astype("<u4").view(np.uint8)[:size].tobytes()


def unpack(data: Codes, count: int, bits: int) -> Codes:
    """Unpack uint8[packed_size(count, bits)] into uint8 codes, above 8 bits uint16.

    CodecError if the bits after the last code are not 0.
    """
    out = np.empty(count, np.uint8 if bits <= 8 else np.uint16)
    left = int(_unpack(data, bits, out))
    if left:
        spare = 8 * data.size - count * bits
        raise CodecError(f"the {spare} bits after code {count - 1} must be 0, got {left:#x}")
    return out
