"""The largest magnitude of a vector or sum, found in the same pass that checks the values.

Without their signs, float32 are ordered as their bits; infinity and NaN come last.
"""

import numpy as np

from gradplane._kernels import njit
from gradplane.codecs._base import Floats, check_vector

INFINITE = 0x7F800000  # bits of the least magnitude that is not finite


@njit(cache=True, nogil=True)
def _largest(words):  # type: ignore[no-untyped-def]
    most = np.uint32(0)
    for i in range(words.size):
        most = max(most, words[i] & np.uint32(0x7FFFFFFF))
    return most


@njit(cache=True, nogil=True)
def _add(x, y, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = x[i] + y[i]


@njit(cache=True, nogil=True)
def _add_blocks(x, y, out, words):  # type: ignore[no-untyped-def]
    """Add; return the largest magnitude of the sum's bits, `words`, found while in the cache."""
    most = np.uint32(0)
    for start in range(0, out.size, 4096):
        here = slice(start, start + 4096)
        _add(x[here], y[here], out[here])
        most = max(most, _largest(words[here]))
    return most


def largest(x: Floats) -> np.float32:
    """Return max |x|, 0 for an empty vector; CodecError if a value is not finite."""
    return _checked(_largest(x.view(np.uint32)), x)


def add(x: Floats, y: Floats) -> tuple[Floats, np.float32]:
    """Return x + y and its largest magnitude; CodecError if a sum is not finite."""
    out = np.empty_like(x)
    return out, _checked(_add_blocks(x, y, out, out.view(np.uint32)), out)


def _checked(bits: int, x: Floats) -> np.float32:
    if bits >= INFINITE:
        check_vector(x)
    return np.uint32(bits).view(np.float32)
