"""Digests to compare runs by: the first 16 hex digits of SHA-256 over little-endian bytes."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(*parts: bytes | npt.NDArray[Any]) -> str:
    """Return the digest of the concatenated parts; arrays in C order, each value little-endian."""
    state = hashlib.sha256()
    for part in parts:
        state.update(part if isinstance(part, bytes) else little_endian(part).data)
    return state.hexdigest()[:16]


def little_endian(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes as the hash reads them; a copy only where they are not so already."""
    ordered = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return ordered.reshape(-1).view(np.uint8)
