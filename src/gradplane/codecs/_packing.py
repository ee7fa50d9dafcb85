"""Packing as the switch reads it: codes in fields of 1, 2, 4 or 8 bits, those of 3 bits in 4.

The first of the fields in a byte is in its high bits.
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes
from gradplane.codecs._network_limits import code_bits


@njit(cache=True, nogil=True)
def join(codes, width, out):  # type: ignore[no-untyped-def]
    """Write codes into fields of so many bits, and 0 behind them."""
    each = 8 // width
    whole = codes.size // each
    if width == 1:
        _join(codes, 1, whole, out)
    elif width == 2:
        _join(codes, 2, whole, out)
    elif width == 4:
        _join(codes, 4, whole, out)
    else:
        for i in range(whole):
            out[i] = codes[i]
    out[whole:] = 0
    for i in range(each * whole, codes.size):
        out[whole] |= codes[i] << np.uint8(8 - width * (1 + i % each))


@njit(cache=True, nogil=True)
def _join(codes, width, count, out):  # type: ignore[no-untyped-def]
    """Write so many bytes; the width is a constant, which unrolls the inner loop."""
    for i in range(count):
        joined = np.uint8(0)
        for j in range(8 // width):
            joined = joined << np.uint8(width) | codes[8 // width * i + j]
        out[i] = joined


@njit(cache=True, nogil=True)
def _split(data, width, out):  # type: ignore[no-untyped-def]
    """Read fields of so many bits, fewer than 8."""
    if width == 1:
        _split_by(data, 1, out)
    elif width == 2:
        _split_by(data, 2, out)
    else:
        _split_by(data, 4, out)


@njit(cache=True, nogil=True)
def _split_by(data, width, out):  # type: ignore[no-untyped-def]
    each, mask = 8 // width, np.uint8((1 << width) - 1)
    for i in range(data.size):
        for j in range(each):
            out[each * i + j] = data[i] >> np.uint8(8 - width * (j + 1)) & mask


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes of `count` codes."""
    return -(-count * code_bits(1 << bits) // 8)


def pack(codes: Codes, bits: int) -> bytes:
    """Pack uint8 codes below 2^bits; the fields behind the last one are 0."""
    width = code_bits(1 << bits)
    if width == 8:
        return codes.tobytes()
    out = np.empty(packed_size(codes.size, bits), np.uint8)
    join(codes, width, out)
    return out.tobytes()


def unpack(data: Codes, count: int, bits: int) -> Codes:
    """Unpack uint8[packed_size(count, bits)]; CodecError if a code is 2^bits or more."""
    codes, width = data, code_bits(1 << bits)
    if width < 8:
        codes = np.empty(8 // width * data.size, np.uint8)
        _split(data, width, codes)
        if codes[count:].any():
            after = codes[count:].max()
            raise CodecError(f"the fields after code {count - 1} must be 0, got {after}")
        codes = codes[:count]
    if bits != width and codes.size and codes.max() >> bits:
        index = int(np.argmax(codes >> bits > 0))
        raise CodecError(f"code {codes[index]} at lane {index} does not fit {bits} bits")
    return codes
