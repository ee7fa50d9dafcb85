"""Packing as the switch reads it: codes of 1 to 4 bits in 4-bit fields, of 5 to 8 bits in bytes.

The first of two 4-bit fields is the high half of the byte.
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes


@njit(cache=True, nogil=True)
def _join(codes, out):  # type: ignore[no-untyped-def]
    for i in range(codes.size // 2):
        out[i] = codes[2 * i] << 4 | codes[2 * i + 1]
    if codes.size % 2:
        out[-1] = codes[-1] << 4


@njit(cache=True, nogil=True)
def _split(data, out):  # type: ignore[no-untyped-def]
    for i in range(data.size):
        out[2 * i] = data[i] >> 4
        out[2 * i + 1] = data[i] & 15


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes of `count` codes."""
    return (count + 1) // 2 if bits <= 4 else count


def pack(codes: Codes, bits: int) -> bytes:
    """Pack uint8 codes below 2^bits; an odd last field is followed by a zero field."""
    if bits > 4:
        return codes.tobytes()
    out = np.empty(packed_size(codes.size, bits), np.uint8)
    _join(codes, out)
    return out.tobytes()


def unpack(data: Codes, count: int, bits: int) -> Codes:
    """Unpack uint8[packed_size(count, bits)]; CodecError if a code is 2^bits or more."""
    codes = data
    if bits <= 4:
        codes = np.empty(2 * data.size, np.uint8)
        _split(data, codes)
        if codes[count:].any():
            raise CodecError(f"the field after code {count - 1} must be 0, got {codes[count]}")
        codes = codes[:count]
    if bits not in (4, 8) and codes.size and codes.max() >> bits:
        index = int(np.argmax(codes >> bits > 0))
        raise CodecError(f"code {codes[index]} at lane {index} does not fit {bits} bits")
    return codes
