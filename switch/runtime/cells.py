"""Small numbers in memory of their own, which compiled code reads and writes at its address."""

from __future__ import annotations

import ctypes


def signed_words(count: int) -> memoryview[int]:
    """`count` 64-bit integers, zero."""
    return memoryview(bytearray(8 * count)).cast("q")


def unsigned_words(count: int) -> memoryview[int]:
    """`count` unsigned 64-bit integers, zero."""
    return memoryview(bytearray(8 * count)).cast("Q")


def address_of(words: memoryview[int]) -> int:
    """Where they lie, as long as the view lives."""
    return ctypes.addressof(ctypes.c_char.from_buffer(words))
