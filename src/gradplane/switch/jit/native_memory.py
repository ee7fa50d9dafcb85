"""Memory that native code reads, with its address in a state word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

SetWord = Callable[[str, int], None]


class Memory:
    """Bytes at a fixed address until they grow; zero at first."""

    def __init__(self, name: str, set_word: SetWord, size: int = 64) -> None:
        self._name = name
        self._set_word = set_word
        self.array: npt.NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self.view = memoryview(b"")
        self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for at least `size` bytes."""
        if size <= len(self.array) and len(self.array):
            return
        bigger = np.zeros(max(size, 2 * len(self.array), 64), dtype=np.uint8)
        bigger[: len(self.array)] = self.array
        self.array = bigger
        self.view = memoryview(bigger)  # type: ignore[arg-type]
        self._set_word(self._name, int(bigger.__array_interface__["data"][0]))

    def write(self, at: int, data: bytes) -> None:
        self.view[at : at + len(data)] = data
