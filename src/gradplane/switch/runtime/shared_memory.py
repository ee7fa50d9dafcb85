"""Memory that compiled code reads and writes by its address: small arrays and large blocks."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

LINE = 64  # bytes of a cache line


def signed_words(count: int) -> memoryview[int]:
    """Return `count` 64-bit integers, all 0."""
    return memoryview(bytearray(8 * count)).cast("q")


def unsigned_words(count: int) -> memoryview[int]:
    """Return `count` unsigned 64-bit integers, all 0."""
    return memoryview(bytearray(8 * count)).cast("Q")


def address_of(words: memoryview[int]) -> int:
    """Return the address of an array's words, valid as long as the view lives."""
    return ctypes.addressof(ctypes.c_char.from_buffer(words))


def block(size: int) -> npt.NDArray[np.uint8]:
    """Return `size` zero bytes, aligned to a cache line."""
    whole = np.zeros(size + LINE, dtype=np.uint8)
    start = -int(whole.__array_interface__["data"][0]) % LINE
    return whole[start : start + size]
