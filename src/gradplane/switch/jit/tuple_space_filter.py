"""The filter of a tuple space's groups: those that a key can be in.

For each byte of the key and each of its values there is a row of bits, one for each group: set if
some entry of the group allows that value there. The groups that a key can be in are those whose
bits are set in all of its bytes' rows; as a rule few, however many masks there are.

A bit stays until its group is removed; it then costs a lookup that misses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

BLOCK = 64  # groups, a bit each of a word

Rows = npt.NDArray[np.uint64]


class Guard:
    """The filter for keys, of which it looks at the lowest `size` bytes. `moved` is called with the
    memory's address and the bytes of a row."""

    def __init__(self, size: int, moved: Callable[[int, int], None]) -> None:
        self._size = size
        self._moved = moved
        self._rows: Rows = np.zeros((size, 256, 0), dtype=np.uint64)
        self._cells = memoryview(b"").cast("Q")
        self._grow(1)

    def open(self, group: int, masks: int) -> list[tuple[int, int]]:
        """Add a group without entries; return the bytes that its masks look at: (number, mask)."""
        block, bit = divmod(group, BLOCK)
        if block >= self._rows.shape[2]:
            self._grow(block + 1)
        parts = [(i, masks >> (8 * i) & 0xFF) for i in range(self._size)]
        any_value = [i for i, mask in parts if not mask]
        self._rows[any_value, :, block] |= np.uint64(1 << bit)
        return [(i, mask) for i, mask in parts if mask]

    def add(self, group: int, parts: Sequence[tuple[int, int]], values: int) -> None:
        """Add an entry's values to a group; `parts` is the result of `open`."""
        block, place = divmod(group, BLOCK)
        bit, width, cells = 1 << place, self._rows.shape[2], self._cells
        for i, mask in parts:
            value = values >> (8 * i) & 0xFF
            if mask == 0xFF:
                cells[(i << 8 | value) * width + block] |= bit
            else:
                self._rows[i, value | _free(mask), block] |= np.uint64(bit)

    def close(self, group: int) -> None:
        """Remove a group."""
        block, bit = divmod(group, BLOCK)
        self._rows[:, :, block] &= ~np.uint64(1 << bit)

    def _grow(self, blocks: int) -> None:
        before = self._rows
        bigger = np.zeros((self._size, 256, max(blocks, 2 * before.shape[2])), dtype=np.uint64)
        bigger[:, :, : before.shape[2]] = before
        self._rows = bigger
        self._cells = memoryview(bigger.reshape(-1))  # type: ignore[arg-type]
        self._moved(bigger.ctypes.data, 8 * bigger.shape[2])


@cache
def _free(mask: int) -> npt.NDArray[np.int64]:
    """Return the values of the bits that a byte's mask leaves free."""
    return np.array([v for v in range(256) if not v & mask], dtype=np.int64)
