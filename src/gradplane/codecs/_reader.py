"""A reader of encoded bytes from front to back, whose errors say what is missing where."""

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
        """Read `count` items; CodecError "truncated" if the bytes end before."""
        size = np.dtype(dtype).itemsize * count
        if self._at + size > len(self._data):
            left = len(self._data) - self._at
            at = self._at
            raise CodecError(f"truncated: {what}, {size} bytes from byte {at} on, {left} left")
        items = np.frombuffer(self._data, dtype, count, self._at)
        self._at += size
        return items

    def need(self, size: int, what: str) -> None:
        """Raise CodecError "truncated" if fewer bytes are left.

        To be called before memory is allocated by an n that is not checked otherwise.
        """
        left = len(self._data) - self._at
        if size > left:
            raise CodecError(f"truncated: {what}, at least {size} bytes, {left} left")

    def magnitude(self, what: str) -> np.float32:
        """Read a float32; CodecError if it is negative or not finite."""
        value = np.float32(self.array("<f4", 1, what)[0])
        if not 0 <= value < np.inf:
            raise CodecError(f"corrupted: {what} = {value} is not a magnitude")
        return value

    def rest(self) -> npt.NDArray[np.uint8]:
        """Return all bytes that are left, uint8, without reading them."""
        return np.frombuffer(self._data, np.uint8, offset=self._at)

    def end(self) -> None:
        """Raise CodecError if bytes are left."""
        left = len(self._data) - self._at
        if left:
            raise CodecError(f"{left} bytes too many: {self._at} expected, got {len(self._data)}")
