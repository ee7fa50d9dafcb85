"""A fast check that no value of a vector is NaN or infinite, and vectors that need it no more."""

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

# By type: an integer type of the same size, all bits but the sign, and those of infinity: only the
# bits of NaN are above.
_BITS = {
    np.dtype(kind): (bits, bits(np.iinfo(bits).max), np.array(np.inf, kind).view(bits)[()])
    for kind, bits in ((np.float16, np.int16), (np.float32, np.int32), (np.float64, np.int64))
}

# By id, of arrays that own their memory, which nobody changes: all their values are finite.
_known: dict[int, "weakref.ref[npt.NDArray[Any]]"] = {}


def all_finite(x: npt.NDArray[np.floating[Any]]) -> bool:
    """Return whether all values of a vector are finite; parts of a known one are not read."""
    if is_known_finite(x):
        return True
    from gradplane._vector_kernels import below

    bits, mask, infinity = _BITS[x.dtype]
    return bool(below(x.view(bits), mask, infinity))


def known_finite(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array whose values are all finite and stay as they are, as long as it exists."""
    owner, known = _owner(x), id(_owner(x))
    assert owner.size == x.size, "all that its memory holds is known"
    _known[known] = weakref.ref(owner, lambda _: _known.pop(known, None))
    return x


def is_known_finite(x: npt.NDArray[Any]) -> bool:
    """Return whether an array, or one that it is a part of, was given to known_finite()."""
    return id(_owner(x)) in _known


def _owner(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.base if isinstance(x.base, np.ndarray) else x
