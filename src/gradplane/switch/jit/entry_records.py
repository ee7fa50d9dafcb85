"""The records of a table's entries in native memory, by kind of table.

The kinds and layouts are described in gradplane.switch.jit.table_layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.hash_tables import Hash, Lpm, joined
from gradplane.switch.jit.native_memory import SetWord
from gradplane.switch.jit.table_layout import PLAIN_RECORD, Shape
from gradplane.switch.jit.tuple_space import Tuples
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.lookup import entry_values


class _None:
    """The record of a table without a key: the default."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape

    def set_default(self, record: bytes) -> None:
        """Do nothing: the mirror has written it."""

    def insert(self, entry: Entry, part: bytes) -> None:
        raise AssertionError(entry)

    modify = insert

    def delete(self, entry: Entry) -> None:
        raise AssertionError(entry)


class _Direct:
    """A record for every key."""

    def __init__(self, shape: Shape, block: npt.NDArray[np.uint8]) -> None:
        self.shape = shape
        self._rows = _rows(block, shape.records, shape.bits, shape.stride)
        self._used = np.zeros(1 << shape.bits, dtype=bool)
        self._default = b""

    def set_default(self, record: bytes) -> None:
        self._default = record.ljust(self.shape.stride, b"\0")
        self._rows[~self._used] = np.frombuffer(self._default, dtype=np.uint8)

    def insert(self, entry: Entry, part: bytes) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = True
        self._rows[at] = np.frombuffer(part, dtype=np.uint8)

    modify = insert

    def delete(self, entry: Entry) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = False
        self._rows[at] = np.frombuffer(self._default, dtype=np.uint8)


class _Plain:
    """Records of the values that each key's action assigns, and its tag."""

    def __init__(self, shape: Shape, block: npt.NDArray[np.uint8]) -> None:
        self.shape = shape
        self._rows = _rows(block, shape.records, shape.bits, shape.stride)
        self._tags = block[shape.tags : shape.tags + (1 << shape.bits)]
        self._used = np.zeros(1 << shape.bits, dtype=bool)
        self._default = b""

    def set_default(self, record: bytes) -> None:
        self._default = record
        free = ~self._used
        self._rows[free] = np.frombuffer(record, dtype=np.uint8, offset=PLAIN_RECORD)
        self._tags[free] = record[0]

    def insert(self, entry: Entry, part: bytes) -> None:
        self._write(entry, part, True)

    modify = insert

    def delete(self, entry: Entry) -> None:
        self._write(entry, self._default, False)

    def _write(self, entry: Entry, part: bytes, used: bool) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = used
        self._rows[at] = np.frombuffer(part, dtype=np.uint8, offset=PLAIN_RECORD)
        self._tags[at] = part[0]


def _rows(
    block: npt.NDArray[np.uint8], start: int, bits: int, stride: int
) -> npt.NDArray[np.uint8]:
    """Return the records of a direct or plain table."""
    return block[start : start + (stride << bits)].reshape(1 << bits, stride)


class Records(Protocol):
    """The records of any kind of table, as the mirror uses them. `part`: an entry's action part."""

    def set_default(self, record: bytes) -> None: ...

    def insert(self, entry: Entry, part: bytes) -> None: ...

    def modify(self, entry: Entry, part: bytes) -> None: ...

    def delete(self, entry: Entry) -> None: ...


_IN_BLOCK: dict[str, Callable[[Shape, npt.NDArray[np.uint8]], Records]] = {
    "direct": _Direct, "plain": _Plain,
}  # fmt: skip
_KINDS: dict[str, Callable[[Shape, SetWord], Records]] = {
    "none": _None, "hash": Hash, "lpm": Lpm, "tuples": Tuples,
}  # fmt: skip


def make_records(shape: Shape, set_word: SetWord, block: npt.NDArray[np.uint8]) -> Records:
    """Make empty records for a table of this shape; direct and plain ones are in `block`."""
    if shape.kind in _IN_BLOCK:
        return _IN_BLOCK[shape.kind](shape, block)
    return _KINDS[shape.kind](shape, set_word)
