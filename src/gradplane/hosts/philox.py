"""Random values as a function of a stream and a position: NumPy's counter-based Philox.

A stream is a number from `codecs.key(seed, ..., purpose)`; its values do not depend on other draws.
"""

import numpy as np
import numpy.typing as npt


def words(stream: int, n: int) -> npt.NDArray[np.uint64]:
    """Return the stream's first n words, uint64[n]."""
    drawn: npt.NDArray[np.uint64] = np.random.Philox(key=stream).random_raw(n)
    return drawn


def uniforms(stream: int, n: int) -> npt.NDArray[np.float64]:
    """Return the stream's first n values in [0, 1), multiples of 2^-53, float64[n]."""
    return (words(stream, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(stream: int, n: int) -> npt.NDArray[np.int64]:
    """Return 0 to n - 1 in the order of the stream's first n words, int64[n]."""
    return np.argsort(words(stream, n), kind="stable").astype(np.int64)
