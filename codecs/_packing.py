"""Codes of 1 to 4 bits travel in 4-bit fields, those of 5 to 8 bits in bytes.

The first of two 4-bit fields is the high half of the byte.
"""

import numpy as np

from gradplane.codecs._base import CodecError, Codes


def packed_size(count: int, bits: int) -> int:
    """Bytes that `count` codes take."""
    return (count + 1) // 2 if bits <= 4 else count


def pack(codes: Codes, bits: int) -> bytes:
    """uint8 codes below 2^bits to bytes; an odd last field is followed by a zero field."""
    if bits > 4:
        return codes.tobytes()
    out = np.zeros(packed_size(codes.size, bits), np.uint8)
    np.left_shift(codes[0::2], 4, out=out)
    out[: codes.size // 2] |= codes[1::2]
    return out.tobytes()


def unpack(data: Codes, count: int, bits: int) -> Codes:
    """The inverse of pack, from uint8[packed_size(count, bits)]; CodecError if one is too big."""
    codes = data
    if bits <= 4:
        codes = np.empty(2 * data.size, np.uint8)
        np.right_shift(data, 4, out=codes[0::2])
        np.bitwise_and(data, 15, out=codes[1::2])
        codes = codes[:count]
    if bits not in (4, 8) and codes.size and codes.max() >> bits:
        index = int(np.argmax(codes >> bits > 0))
        raise CodecError(f"code {codes[index]} at lane {index} does not fit {bits} bits")
    return codes
