"""The most significant 1 to 4 bytes of float32 values, packed: ADT's Bitpack and Bitunpack.

Byte-wise stores in one loop: the compiler turns them into vector shuffles (the paper's AVX2 form).
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import Codes, Floats, Reader, check_vector
from gradplane.codecs._buffers import blank
from gradplane.codecs._magnitudes import INFINITE

_U8, _U16, _U24 = np.uint32(8), np.uint32(16), np.uint32(24)
_MAGNITUDE = np.uint32(0x7FFFFFFF)


@njit(cache=True, nogil=True)
def _pack(words, keep, out):  # type: ignore[no-untyped-def]
    """Pack; return the largest magnitude's bits, which show a value that is not finite."""
    most = np.uint32(0)
    if keep == 1:
        for i in range(words.size):
            most = max(most, words[i] & _MAGNITUDE)
            out[i] = words[i] >> _U24
    elif keep == 2:
        for i in range(words.size):
            most = max(most, words[i] & _MAGNITUDE)
            out[2 * i], out[2 * i + 1] = words[i] >> _U24, words[i] >> _U16
    elif keep == 3:
        for i in range(words.size):
            most = max(most, words[i] & _MAGNITUDE)
            out[3 * i], out[3 * i + 1] = words[i] >> _U24, words[i] >> _U16
            out[3 * i + 2] = words[i] >> _U8
    else:
        for i in range(words.size):
            most = max(most, words[i] & _MAGNITUDE)
            out[4 * i], out[4 * i + 1] = words[i] >> _U24, words[i] >> _U16
            out[4 * i + 2], out[4 * i + 3] = words[i] >> _U8, words[i]
    return most


@njit(cache=True, nogil=True)
def _unpack(data, keep, words):  # type: ignore[no-untyped-def]
    """Unpack; return the largest magnitude's bits."""
    most = np.uint32(0)
    if keep == 1:
        for i in range(words.size):
            words[i] = np.uint32(data[i]) << _U24
            most = max(most, words[i] & _MAGNITUDE)
    elif keep == 2:
        for i in range(words.size):
            words[i] = np.uint32(data[2 * i]) << _U24 | np.uint32(data[2 * i + 1]) << _U16
            most = max(most, words[i] & _MAGNITUDE)
    elif keep == 3:
        for i in range(words.size):
            upper = np.uint32(data[3 * i]) << _U24 | np.uint32(data[3 * i + 1]) << _U16
            words[i] = upper | np.uint32(data[3 * i + 2]) << _U8
            most = max(most, words[i] & _MAGNITUDE)
    else:
        for i in range(words.size):
            upper = np.uint32(data[4 * i]) << _U24 | np.uint32(data[4 * i + 1]) << _U16
            words[i] = upper | np.uint32(data[4 * i + 2]) << _U8 | np.uint32(data[4 * i + 3])
            most = max(most, words[i] & _MAGNITUDE)
    return most


def pack_into(x: Floats, keep: int, out: Codes) -> bool:
    """Write the `keep` most significant bytes of each value; return True if all are finite."""
    return bool(_pack(x.view(np.uint32), np.int64(keep), out) < INFINITE)


def unpack_into(data: Codes, keep: int, out: Floats) -> bool:
    """Write the values of those bytes, the others 0; return True if all are finite."""
    return bool(_unpack(data, np.int64(keep), out.view(np.uint32)) < INFINITE)


def pack(x: Floats, keep: int) -> bytes:
    """Return the packed bytes; CodecError if a value is not finite."""
    data, view = blank(keep * x.size)
    if not pack_into(x, keep, view):
        check_vector(x)
    return data


def unpack(data: bytes, n: int, keep: int) -> Floats:
    """Return n values of keep * n bytes; CodecError for another size or a value not finite."""
    reader = Reader(data)
    fields = reader.array("u1", keep * n, f"{keep} bytes of each of {n} values")
    reader.end()
    out = np.empty(n, np.float32)
    return out if unpack_into(fields, keep, out) else check_vector(out)
