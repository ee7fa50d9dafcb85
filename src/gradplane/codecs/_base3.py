"""Base-3^5 encoding (3LC, section 3.2): five digits 0, 1, 2 in a byte, the five-partition form.

Digits, padded with 0 to a multiple of five, are cut into five equal parts P0 ... P4; byte i is
81 P0[i] + 27 P1[i] + 9 P2[i] + 3 P3[i] + P4[i], at most 242.
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import CodecError, Codes, Floats

_BLOCK = 4096
_WEIGHTS = (81, 27, 9, 3, 1)


@njit(cache=True, nogil=True)
def _pack(digits, out):  # type: ignore[no-untyped-def]
    """Apply Horner's rule to blocks of bytes, so that each part is read in order."""
    for start in range(0, out.size, _BLOCK):
        block = out[start : start + _BLOCK]
        block[:] = 0
        for part in range(5):
            first = part * out.size + start
            here = digits[first : first + block.size]
            for i in range(here.size):
                block[i] = np.uint8(3) * block[i] + here[i]
            for i in range(here.size, block.size):
                block[i] = np.uint8(3) * block[i]


@njit(cache=True, nogil=True)
def _unpack(groups, weights, digits):  # type: ignore[no-untyped-def]
    for start in range(0, groups.size, _BLOCK):
        block = groups[start : start + _BLOCK]
        for part in range(5):
            first = part * groups.size + start
            here = digits[first : first + block.size]
            # n * r div 2^14 is n div weight for all n below 243
            r = np.uint32(16384 // weights[part] + 1)
            for i in range(here.size):
                upper = np.uint8((np.uint32(block[i]) * r) >> np.uint32(14))
                here[i] = upper % np.uint8(3)


@njit(cache=True, nogil=True)
def _scale(digits, m, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = np.float32(np.int32(digits[i]) - np.int32(1)) * m


def size(n: int) -> int:
    """Return the number of bytes of n digits."""
    return -(-n // 5)


def pack(digits: Codes) -> Codes:
    """Pack uint8[n] of 0, 1, 2 into uint8[size(n)]."""
    out = np.empty(size(digits.size), np.uint8)
    _pack(digits, out)
    return out


def unpack(groups: Codes, n: int) -> Codes:
    """Unpack uint8[size(n)] into uint8[n]; CodecError if a byte is not a group."""
    if groups.size and groups.max() > 242:
        index = int(np.argmax(groups > 242))
        raise CodecError(f"corrupted: byte {groups[index]} at group {index} is above 242")
    digits = np.empty(5 * groups.size, np.uint8)
    _unpack(groups, np.array(_WEIGHTS), digits)
    if digits[n:].any():
        raise CodecError(f"corrupted: digits beyond the {n} of the vector are not 0")
    return digits[:n]


def values(groups: Codes, n: int, m: np.float32) -> Floats:
    """Unpack the digits 0, 1, 2 into float32[n] of -m, 0, m."""
    digits, out = unpack(groups, n), np.empty(n, np.float32)
    _scale(digits, m, out)
    return out
