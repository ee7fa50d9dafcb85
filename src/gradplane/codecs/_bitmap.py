"""Bitmaps with a bit for each value: value i in bit i mod 8 of byte i div 8, unused bits 0."""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes, Reader


@njit(cache=True, nogil=True)
def choose(bitmap, lower, upper, out):  # type: ignore[no-untyped-def]
    """Set out to upper where the bit is 1, else to lower."""
    for start in range(0, out.size, 8):
        byte, some = bitmap[start // 8], out[start : start + 8]
        for i in range(some.size):
            some[i] = upper if (byte >> i) & 1 else lower


@njit(cache=True, nogil=True)
def gather(x, words, threshold, bitmap, out):  # type: ignore[no-untyped-def]
    """Mark and collect the values of at least the threshold's magnitude; return their number.

    `words` are the bits of x, and `threshold` bits too; `out` has one element more than x. No
    branch depends on a value.
    """
    at = 0
    for start in range(0, x.size, 8):
        byte = 0
        for i in range(start, min(start + 8, x.size)):
            large = (words[i] & np.uint32(0x7FFFFFFF)) >= threshold
            byte |= large << (i - start)
            out[at] = x[i]
            at += large
        bitmap[start // 8] = byte
    return at


@njit(cache=True, nogil=True)
def scatter(bitmap, values, out):  # type: ignore[no-untyped-def]
    """Write the values to their places, zeros elsewhere; `values` has one element too many."""
    at = 0
    for start in range(0, out.size, 8):
        byte, some = bitmap[start // 8], out[start : start + 8]
        for i in range(some.size):
            bit = (byte >> i) & 1
            some[i] = values[at] if bit else np.float32(0)
            at += bit


def size(n: int) -> int:
    """Return the number of bytes of n bits."""
    return -(-n // 8)


def read(reader: Reader, n: int) -> Codes:
    """Read a bitmap of n values; CodecError if unused bits are set."""
    bitmap = reader.array("u1", size(n), f"bitmap of {n} values")
    if n % 8 and bitmap[-1] >> n % 8:
        raise CodecError(f"corrupted: bits beyond the {n} of the bitmap are not 0")
    return bitmap
