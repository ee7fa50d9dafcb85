"""The most significant 1 to 4 bytes of float32 values, packed: ADT's Bitpack and Bitunpack.

Byte-wise stores in one loop: the compiler turns them into vector shuffles (the paper's AVX2 form).
"""

import numpy as np
from numba import njit

from gradplane.codecs._base import Codes, Floats
from gradplane.codecs._buffers import blank
from gradplane.codecs._reader import Reader


@njit(cache=True, nogil=True)
def _pack(words, keep, out):  # type: ignore[no-untyped-def]
    if keep == 1:
        for i in range(words.size):
            out[i] = words[i] >> np.uint32(24)
    elif keep == 2:
        for i in range(words.size):
            out[2 * i] = words[i] >> np.uint32(24)
            out[2 * i + 1] = words[i] >> np.uint32(16)
    elif keep == 3:
        for i in range(words.size):
            out[3 * i] = words[i] >> np.uint32(24)
            out[3 * i + 1] = words[i] >> np.uint32(16)
            out[3 * i + 2] = words[i] >> np.uint32(8)
    else:
        for i in range(words.size):
            out[4 * i] = words[i] >> np.uint32(24)
            out[4 * i + 1] = words[i] >> np.uint32(16)
            out[4 * i + 2] = words[i] >> np.uint32(8)
            out[4 * i + 3] = words[i]


@njit(cache=True, nogil=True)
def _unpack(data, keep, words):  # type: ignore[no-untyped-def]
    if keep == 1:
        for i in range(words.size):
            words[i] = np.uint32(data[i]) << np.uint32(24)
    elif keep == 2:
        for i in range(words.size):
            words[i] = (np.uint32(data[2 * i]) << np.uint32(24)) | (
                np.uint32(data[2 * i + 1]) << np.uint32(16)
            )
    elif keep == 3:
        for i in range(words.size):
            words[i] = (
                (np.uint32(data[3 * i]) << np.uint32(24))
                | (np.uint32(data[3 * i + 1]) << np.uint32(16))
                | (np.uint32(data[3 * i + 2]) << np.uint32(8))
            )
    else:
        for i in range(words.size):
            words[i] = (
                (np.uint32(data[4 * i]) << np.uint32(24))
                | (np.uint32(data[4 * i + 1]) << np.uint32(16))
                | (np.uint32(data[4 * i + 2]) << np.uint32(8))
                | np.uint32(data[4 * i + 3])
            )


def pack_into(x: Floats, keep: int, out: Codes) -> None:
    """Write the `keep` most significant bytes of each value, most significant first."""
    _pack(x.view(np.uint32), np.int64(keep), out)


def unpack_into(data: Codes, keep: int, out: Floats) -> None:
    """The values whose most significant bytes those are; their other bits are zero."""
    _unpack(data, np.int64(keep), out.view(np.uint32))


def pack(x: Floats, keep: int) -> bytes:
    """As pack_into, a new bytes object."""
    data, view = blank(keep * x.size)
    pack_into(x, keep, view)
    return data


def unpack(data: bytes, n: int, keep: int) -> Floats:
    """n values from exactly keep * n bytes; CodecError if there are fewer or more."""
    reader = Reader(data)
    fields = reader.array("u1", keep * n, f"{keep} bytes of each of {n} values")
    reader.end()
    out = np.empty(n, np.float32)
    unpack_into(fields, keep, out)
    return out
