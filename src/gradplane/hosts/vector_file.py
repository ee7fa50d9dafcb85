"""A file of the vectors that a user program reduces, kept so that its exchanges can be replayed.

They stand one after the other, each in the narrowest type that has all its values exactly: those of
half precision travel as float32, and take two bytes a value here.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Place = tuple[int, str]
"""Where a vector begins in the file, bytes, and the type of its values."""

_BFLOAT16 = "bfloat16"  # the upper halves of float32
_TYPES = ("<f4", "<f2", "<i4", "<i8")
_SAMPLE = 1024  # values that say whether the rest is worth a look


class VectorFile:
    """Takes vectors until the file has `limit` bytes; after the first that is too much, none.

    A replay needs all vectors before the one that it comes to: after a gap none is of use.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._file = path.open("wb")
        self._left, self._end = limit, 0

    @property
    def full(self) -> bool:
        """Whether it takes no vector any more."""
        return self._left == 0

    def append(self, x: Array) -> Place | None:
        """Write a vector and return its place; None where the limit, or the disk's, is reached."""
        kind, data = _narrowed(np.ascontiguousarray(x).reshape(-1))
        if data.nbytes > self._left or not self._written(data):
            self._left = 0
            return None
        begin, self._end = self._end, self._end + data.nbytes
        self._left -= data.nbytes
        return begin, kind

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()

    def _written(self, data: Array) -> bool:
        try:
            self._file.write(data.data)
            self._file.flush()  # a rank may be killed at any time
        except OSError:
            return False
        return True


def read(path: Path, place: Place, n: int) -> Array:
    """Return the vector of n values at a place. ValueError where the file is damaged."""
    begin, kind = place
    if kind != _BFLOAT16 and kind not in _TYPES:
        raise ValueError(f"values of type {kind}")
    stored = np.dtype("<u2" if kind == _BFLOAT16 else kind)
    with path.open("rb") as file:
        file.seek(begin)
        data = file.read(n * stored.itemsize)
    if len(data) != n * stored.itemsize:
        raise ValueError(f"it ends within the {n} values from byte {begin} on")
    values = np.frombuffer(data, stored)
    if kind == _BFLOAT16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32 if stored.kind == "f" else stored.newbyteorder("="))


def _narrowed(x: Array) -> tuple[str, Array]:
    if x.dtype.kind != "f":
        kind = x.dtype.newbyteorder("<").str
        return kind, x.astype(kind, copy=False)
    for kind, narrow in ((_BFLOAT16, _upper_halves), ("<f2", _halves)):
        if narrow(x[:_SAMPLE]) is not None and (found := narrow(x)) is not None:
            return kind, found
    return "<f4", x.astype("<f4", copy=False)


def _upper_halves(x: Array) -> Array | None:
    bits = x.view(np.uint32)
    return None if (bits & 0xFFFF).any() else (bits >> 16).astype("<u2")


def _halves(x: Array) -> Array | None:
    with np.errstate(over="ignore"):
        halves = x.astype("<f2")
    return halves if (halves.astype(np.float32) == x).all() else None
