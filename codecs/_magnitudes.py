"""The largest magnitude of a vector, in one pass, and vectors added on the way."""

import numpy as np
from numba import njit

from gradplane.codecs._base import Floats


@njit(cache=True, nogil=True)
def _largest(words):  # type: ignore[no-untyped-def]
    """Without their signs float32 are ordered as their bits are."""
    most = np.uint32(0)
    for i in range(words.size):
        most = max(most, words[i] & np.uint32(0x7FFFFFFF))
    return most


def largest(x: Floats) -> np.float32:
    """max |x|; 0 of an empty vector."""
    return np.uint32(_largest(x.view(np.uint32))).view(np.float32)
