"""A fast check that no value of a vector is NaN or infinite."""

from typing import Any

import numpy as np
import numpy.typing as npt

# By type: an integer type of the same size, all bits but the sign, and those of infinity: only the
# bits of NaN are above.
_BITS = {
    np.dtype(kind): (bits, bits(np.iinfo(bits).max), np.array(np.inf, kind).view(bits)[()])
    for kind, bits in ((np.float16, np.int16), (np.float32, np.int32), (np.float64, np.int64))
}


def all_finite(x: npt.NDArray[np.floating[Any]]) -> bool:
    """Return whether all values of a vector are finite."""
    from gradplane._vector_kernels import below

    bits, mask, infinity = _BITS[x.dtype]
    return bool(below(x.view(bits), mask, infinity))
