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

    def need(self, size: int, what: str) -> None:
        """CodecError "truncated" if fewer bytes are left: before what follows from an n that
        nobody has checked is allocated."""
        left = len(self._data) - self._at
        if size > left:
            raise CodecError(f"truncated: {what}, at least {size} bytes, {left} left")

    def magnitude(self, what: str) -> np.float32:
        """The next float32, if it is finite and not negative; else CodecError."""
        value = np.float32(self.array("<f4", 1, what)[0])
        if not 0 <= value < np.inf:
            raise CodecError(f"corrupted: {what} = {value} is not a magnitude")
        return value

    def rest(self) -> npt.NDArray[np.uint8]:
        """All bytes that are left, uint8; they stay unread."""
        return np.frombuffer(self._data, np.uint8, offset=self._at)

    def end(self) -> None:
        """CodecError if bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise CodecError(f"{left} bytes too many: {self._at} expected, got {len(self._data)}")
