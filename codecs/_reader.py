"""Reads a codec's bytes front to back and says what was missing where."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs._base import CodecError


class Reader:
    """A cursor over encoded bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def array(self, dtype: str, count: int, what: str) -> npt.NDArray[Any]:
        """The next `count` items; CodecError "truncated" if the bytes end before."""
        size = np.dtype(dtype).itemsize * count
        if self._at + size > len(self._data):
            left = len(self._data) - self._at
            at = self._at
            raise CodecError(f"truncated: {what}, {size} bytes from byte {at} on, {left} left")
        items = np.frombuffer(self._data, dtype, count, self._at)
        self._at += size
        return items

    def end(self) -> None:
        """CodecError if bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise CodecError(f"{left} bytes too many: {self._at} expected, got {len(self._data)}")
