"""The records of a table's entries in native memory, by kind of table.

The kinds and layouts are described in gradplane.switch.jit.shapes.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.memory import Memory, SetWord
from gradplane.switch.jit.shapes import TOMBSTONE, Shape, hashed
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.lookup import entry_masks, entry_values


class _None:
    """No key, no entries."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape

    def set_default(self, record: bytes) -> None:
        """The mirror has written it."""

    def clear(self) -> None:
        """There is nothing to clear."""

    def insert(self, entry: Entry, part: bytes) -> None:
        raise AssertionError(entry)

    modify = insert

    def delete(self, entry: Entry) -> None:
        raise AssertionError(entry)


class _Direct:
    """A record for every key."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape
        self._memory = Memory(shape.word("records"), set_word, shape.stride << shape.bits)
        self._used = np.zeros(1 << shape.bits, dtype=bool)
        self._default = b""

    def _rows(self) -> npt.NDArray[np.uint8]:
        count, stride = 1 << self.shape.bits, self.shape.stride
        return self._memory.array[: count * stride].reshape(count, stride)

    def set_default(self, record: bytes) -> None:
        self._default = record.ljust(self.shape.stride, b"\0")
        self._rows()[~self._used] = np.frombuffer(self._default, dtype=np.uint8)

    def insert(self, entry: Entry, part: bytes) -> None:
        at = _joined(self.shape, entry_values(entry))
        self._used[at] = True
        self._memory.write(at * self.shape.stride, part)

    modify = insert

    def delete(self, entry: Entry) -> None:
        at = _joined(self.shape, entry_values(entry))
        self._used[at] = False
        self._memory.write(at * self.shape.stride, self._default)

    def clear(self) -> None:
        self._used.fill(False)
        self.set_default(self._default)


class Records(Protocol):
    """What the mirror asks of each kind of table. `part`: an entry's action part."""

    def set_default(self, record: bytes) -> None: ...

    def clear(self) -> None: ...

    def insert(self, entry: Entry, part: bytes) -> None: ...

    def modify(self, entry: Entry, part: bytes) -> None: ...

    def delete(self, entry: Entry) -> None: ...


class _Numbered:
    """Records in any order; `slots`: their numbers by the entry's id()."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape
        self._set_word = set_word
        self.memory = Memory(shape.word("records"), set_word)
        self.slots: dict[int, int] = {}
        self._free: list[int] = []
        self._next = 0

    def set_default(self, record: bytes) -> None:
        """A miss finds the default record, which the mirror writes."""

    def set(self, part: str, value: int) -> None:
        """Sets one of the table's state words."""
        self._set_word(self.shape.word(part), value)

    def place(self, entry: Entry, key: bytes, part: bytes) -> int:
        """Writes a new record; its number."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._next = self._next, self._next + 1
            self.memory.grow(self._next * self.shape.stride)
        self.slots[id(entry)] = slot
        self.memory.write(slot * self.shape.stride, key + part)
        return slot

    def modify(self, entry: Entry, part: bytes) -> None:
        at = self.slots[id(entry)] * self.shape.stride + self.shape.key_size
        self.memory.write(at, part)

    def drop(self, entry: Entry) -> int:
        slot = self.slots.pop(id(entry))
        self._free.append(slot)
        return slot

    def clear(self) -> None:
        self.slots.clear()
        self._free.clear()
        self._next = 0


class _Hash(_Numbered):
    """An index by hash: record number plus 1, 0 free, TOMBSTONE deleted."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        self._filled = 0  # places that are not free
        self._hashes: dict[int, int] = {}  # by record number
        self._index = np.zeros(0, dtype=np.uint32)
        self._rebuild(64)

    def insert(self, entry: Entry, part: bytes) -> None:
        words = self.key(entry)
        slot = self.place(entry, _bytes(words), part)
        self._hashes[slot] = hashed(words)
        if 2 * (self._filled + 1) > len(self._index):
            self._rebuild(4 * len(self.slots))
        else:
            self._add(slot)

    def delete(self, entry: Entry) -> None:
        slot = self.drop(entry)
        at = self._hashes.pop(slot) & (len(self._index) - 1)
        while self._index[at] != slot + 1:
            at = (at + 1) & (len(self._index) - 1)
        self._index[at] = TOMBSTONE

    def clear(self) -> None:
        super().clear()
        self._hashes.clear()
        self._rebuild(64)

    def key(self, entry: Entry) -> list[int]:
        """The key's words, the lowest first."""
        return _split(_joined(self.shape, entry_values(entry)), self.shape.words)

    def _add(self, slot: int) -> None:
        index, mask = self._cells, len(self._index) - 1
        at = self._hashes[slot] & mask
        while index[at] not in (0, TOMBSTONE):
            at = (at + 1) & mask
        self._filled += index[at] == 0
        index[at] = slot + 1

    def _rebuild(self, size: int) -> None:
        capacity = 1 << max(6, (size - 1).bit_length())
        self._index = np.zeros(capacity, dtype=np.uint32)
        self._cells = memoryview(self._index)  # type: ignore[arg-type]
        self._filled = 0
        for slot in self._hashes:
            self._add(slot)
        self.set("index", int(self._index.__array_interface__["data"][0]))
        self.set("mask", capacity - 1)


class _Prefix(_Hash):
    """Groups of entries with equal masks; the greatest masks are tried first."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self._groups: dict[tuple[int, ...], list[int]] = {}  # masks -> number, entries
        self._numbers = 0
        super().__init__(shape, set_word)
        self._order = Memory(shape.word("order"), set_word)

    def insert(self, entry: Entry, part: bytes) -> None:
        masks = entry_masks(entry, self.shape.fields)
        group = self._groups.get(masks)
        if group is None:
            self._numbers += 1
            group = self._groups[masks] = [self._numbers, 0]
        group[1] += 1
        super().insert(entry, part)
        if group[1] == 1:
            self._write_order()

    def delete(self, entry: Entry) -> None:
        super().delete(entry)
        masks = entry_masks(entry, self.shape.fields)
        self._groups[masks][1] -= 1
        if not self._groups[masks][1]:
            del self._groups[masks]
            self._write_order()

    def clear(self) -> None:
        super().clear()
        self._groups.clear()
        self._write_order()

    def key(self, entry: Entry) -> list[int]:
        return [*super().key(entry), self._groups[entry_masks(entry, self.shape.fields)][0]]

    def _write_order(self) -> None:
        out = b""
        for masks in sorted(self._groups, reverse=True):
            words = _split(_joined(self.shape, masks), self.shape.words)
            out += _bytes([*words, self._groups[masks][0]])
        self._order.grow(len(out))
        self._order.write(0, out)
        self.set("count", len(self._groups))


class _Scan(_Numbered):
    """Record numbers in order of precedence: by falling priority, then by age."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        self._ranks: list[tuple[int, int]] = []
        self._order = Memory(shape.word("order"), set_word)

    def insert(self, entry: Entry, part: bytes) -> None:
        slot, count = self.place(entry, self._key(entry), part), len(self._ranks)
        at = bisect(self._ranks, _rank(entry))
        self._ranks.insert(at, _rank(entry))
        self._order.grow(4 * (count + 1))
        order = self._order.array.view(np.uint32)
        order[at + 1 : count + 1] = order[at:count]
        order[at] = slot
        self.set("count", count + 1)

    def delete(self, entry: Entry) -> None:
        self.drop(entry)
        at, count = bisect_left(self._ranks, _rank(entry)), len(self._ranks)
        del self._ranks[at]
        order = self._order.array.view(np.uint32)
        order[at : count - 1] = order[at + 1 : count]
        self.set("count", count - 1)

    def clear(self) -> None:
        super().clear()
        self._ranks.clear()
        self.set("count", 0)

    def _key(self, entry: Entry) -> bytes:
        shape, out = self.shape, bytearray()
        values = _split(_joined(shape, entry_values(entry)), shape.words)
        masks = _split(_joined(shape, entry_masks(entry, shape.fields)), shape.words)
        for value, mask in zip(values, masks, strict=True):
            out += _bytes([value, mask])
        for i in shape.ranges:
            out += self._bounds(entry, i)
        return bytes(out)

    def _bounds(self, entry: Entry, i: int) -> bytes:
        field, match = self.shape.fields[i], entry.matches[i]
        half = 1 << field.width >> 1 if field.signed else 0
        low, high = match if match is not None else (half, half ^ field.full)
        size = 8 * -(-field.width // 64)
        return low.to_bytes(size, "little") + high.to_bytes(size, "little")


def _rank(entry: Entry) -> tuple[int, int]:
    return -entry.priority, entry.serial


_KINDS: dict[str, Callable[[Shape, SetWord], Records]] = {
    "none": _None, "direct": _Direct, "hash": _Hash, "prefix": _Prefix, "scan": _Scan,
}  # fmt: skip


def make_records(shape: Shape, set_word: SetWord) -> Records:
    """Empty records for a table of this shape."""
    return _KINDS[shape.kind](shape, set_word)


def _joined(shape: Shape, values: Sequence[int]) -> int:
    """All fields but ranges as one number, as compiled code joins the keys."""
    number = 0
    for i, (field, value) in enumerate(zip(shape.fields, values, strict=True)):
        if i not in shape.ranges:
            number = number << field.width | value
    return number


def _split(number: int, words: int) -> list[int]:
    return [number >> (64 * i) & ((1 << 64) - 1) for i in range(words)]


def _bytes(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)
