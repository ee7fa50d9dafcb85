"""Digests to compare runs by: 16 hex digits, over little-endian bytes.

Records name the function that made their digests; those of older versions, by SHA-256, name none.
A replay uses the function of its records, as digests by different functions are never equal.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

FUNCTION = "XXH3-64"
"""The function of new records: XXH3 (xxhash.com), 64 bits, seed 0, in its canonical form."""

OLDER = "SHA-256"
"""The function of records that name none; the digest is its first 8 bytes."""

_BEGIN: dict[str, Callable[[], Any]] = {FUNCTION: xxhash.xxh3_64, OLDER: hashlib.sha256}
FUNCTIONS = tuple(_BEGIN)
_current = ContextVar("digest function", default=FUNCTION)


@contextmanager
def digests_by(function: str) -> Iterator[None]:
    """Have this thread's digests made by another of FUNCTIONS, to compare them with older ones."""
    before = _current.set(function)
    try:
        yield
    finally:
        _current.reset(before)


def digest(*parts: bytes | npt.NDArray[Any]) -> str:
    """Return the digest of the concatenated parts; arrays in C order, each value little-endian."""
    return digest_by(function(), *parts)


def function() -> str:
    """Return which of FUNCTIONS makes this thread's digests."""
    return _current.get()


def digest_by(function: str, *parts: bytes | npt.NDArray[Any]) -> str:
    """Return the digest by one of FUNCTIONS, as `digest` does."""
    state = _BEGIN[function]()
    for part in parts:
        state.update(part if isinstance(part, bytes) else _little_endian(part).data)
    made: str = state.hexdigest()
    return made[:16]


def row_digests(function: str, rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the digest of each row by one of FUNCTIONS, as a number."""
    if function != FUNCTION:
        return np.array([int(digest_by(function, row), 16) for row in rows], np.uint64)
    data, size = _little_endian(rows).data, rows[0].nbytes if len(rows) else 1
    starts = range(0, len(data), size)
    return np.array([xxhash.xxh3_64_intdigest(data[at : at + size]) for at in starts], np.uint64)


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes as the hash reads them; a copy only where they are not so already."""
    ordered = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return ordered.reshape(-1).view(np.uint8)
