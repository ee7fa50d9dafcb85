"""Records that are found by hash: those of exact keys, and of keys with prefixes.

Layouts: gradplane.switch.jit.table_layout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.table_layout import TOMBSTONE, Shape, hashed
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.lookup import entry_values


class Numbered:
    """Records in any order, by number."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape
        self._set_word = set_word
        self.memory = Memory(shape.word("records"), set_word)
        self._free: list[int] = []
        self._next = 0

    def set_default(self, record: bytes) -> None:
        """Do nothing: a miss finds the default record, which the mirror writes."""

    def set(self, part: str, value: int) -> None:
        """Set one of the table's state words."""
        self._set_word(self.shape.word(part), value)

    def place(self, record: bytes) -> int:
        """Write a new record; return its number."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._next = self._next, self._next + 1
            self.memory.grow(self._next * self.shape.stride)
        self.memory.write(slot * self.shape.stride, record)
        return slot

    def rewrite(self, slot: int, part: bytes) -> None:
        """Give a record another action part."""
        self.memory.write(slot * self.shape.stride + self.shape.key_size, part)

    def drop(self, slot: int) -> None:
        self._free.append(slot)


class Index:
    """Record numbers by hash, open addressing: number plus 1, 0 free, TOMBSTONE deleted.

    Packets wait while it is rebuilt, so that is done on whole arrays.
    """

    def __init__(self, records: Numbered) -> None:
        self._records = records
        self._filled = 0  # places that are not free
        self._count = 0  # records in it
        self._hashes = memoryview(b"").cast("Q")  # by record number
        self._entered = memoryview(b"")  # 1: the record is in the index
        self._cells = memoryview(b"").cast("I")
        self._rebuild(64)

    def add(self, slot: int, words: Sequence[int]) -> None:
        """Insert a record by its key."""
        self._take(slot, hashed(words))
        self._count += 1
        if 2 * (self._filled + 1) > len(self._cells):
            self._rebuild(4 * self._count)
            return
        cells, mask = self._cells, len(self._cells) - 1
        at = self._hashes[slot] & mask
        while cells[at] not in (0, TOMBSTONE):
            at = (at + 1) & mask
        self._filled += cells[at] == 0
        cells[at] = slot + 1

    def remove(self, slot: int) -> None:
        self._cells[self._find(slot)] = TOMBSTONE
        self._entered[slot] = 0
        self._count -= 1

    def replace(self, slot: int, other: int) -> None:
        """Replace a record by another one with the same key."""
        self._cells[self._find(slot)] = other + 1
        self._take(other, self._hashes[slot])
        self._entered[slot] = 0

    def _take(self, slot: int, number: int) -> None:
        if slot >= len(self._entered):
            room = 2 * slot + 64
            hashes, entered = np.zeros(room, dtype=np.uint64), np.zeros(room, dtype=np.uint8)
            hashes[: len(self._hashes)] = self._hashes
            entered[: len(self._entered)] = self._entered
            self._hashes, self._entered = memoryview(hashes), memoryview(entered)  # type: ignore[arg-type]
        self._hashes[slot], self._entered[slot] = number, 1

    def _find(self, slot: int) -> int:
        cells, mask = self._cells, len(self._cells) - 1
        at = self._hashes[slot] & mask
        while cells[at] != slot + 1:
            at = (at + 1) & mask
        return at

    def _rebuild(self, size: int) -> None:
        capacity = 1 << max(6, (size - 1).bit_length())
        cells = np.zeros(capacity, dtype=np.uint32)
        slots = np.flatnonzero(self._entered)
        at = (np.asarray(self._hashes)[slots] & np.uint64(capacity - 1)).astype(np.int64)
        numbers = (slots + 1).astype(np.uint32)
        while len(numbers):
            free = cells[at] == 0
            cells[at[free]] = numbers[free]
            left = cells[at] != numbers  # another took the place
            at, numbers = (at[left] + 1) & (capacity - 1), numbers[left]
        self._cells = memoryview(cells)  # type: ignore[arg-type]
        self._filled = self._count
        self._records.set("index", int(cells.__array_interface__["data"][0]))
        self._records.set("mask", capacity - 1)


class Hash(Numbered):
    """Records of exact keys."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        self.index = Index(self)
        self._slots: dict[int, int] = {}  # record numbers by the entry's id()

    def insert(self, entry: Entry, part: bytes) -> None:
        words = self.key(entry)
        slot = self._slots[id(entry)] = self.place(as_bytes(words) + part)
        self.index.add(slot, words)

    def modify(self, entry: Entry, part: bytes) -> None:
        self.rewrite(self._slots[id(entry)], part)

    def delete(self, entry: Entry) -> None:
        slot = self._slots.pop(id(entry))
        self.index.remove(slot)
        self.drop(slot)

    def key(self, entry: Entry) -> list[int]:
        """Return the key's words, the lowest first."""
        return in_words(joined(self.shape, entry_values(entry)), self.shape.words)


class Lpm(Hash):
    """Records of one lpm field and exact ones: each prefix length is a group.

    For each value of the field's first bits the guard has a row of bits, one for each length that
    entries there have: few of those that exist. A bit once set stays; it then costs a lookup that
    misses.
    """

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        assert shape.guard is not None, shape
        self._bits, words = shape.guard
        self._lpm = shape.lpm
        self._width = shape.fields[shape.lpm].width
        self._memory = Memory(shape.word("guard"), set_word, 8 * words << self._bits)
        guard = self._memory.array.view(np.uint64)
        self._guard = guard[: words << self._bits].reshape(-1, words)
        rows = b"".join(self._row(length) for length in range(self._width + 1))
        self._order = Memory(shape.word("order"), set_word, len(rows))
        self._order.write(0, rows)

    def insert(self, entry: Entry, part: bytes) -> None:
        super().insert(entry, part)
        value = entry_values(entry)[self._lpm]
        length = self._length(entry)
        first = value >> (self._width - self._bits)
        count = 1 << max(self._bits - length, 0)
        self._guard[first : first + count, length // 64] |= np.uint64(1 << length % 64)

    def key(self, entry: Entry) -> list[int]:
        return [*super().key(entry), self._length(entry)]

    def _length(self, entry: Entry) -> int:
        match = entry.matches[self._lpm]
        return 0 if match is None else match[1]

    def _row(self, length: int) -> bytes:
        """Return the masks of a group, and its number."""
        fields = self.shape.fields
        masks = [f.mask(length) if f.kind == "lpm" else f.full for f in fields]
        return as_bytes([*in_words(joined(self.shape, masks), self.shape.words), length])


def joined(shape: Shape, values: Sequence[int]) -> int:
    """Join all fields into one number, as compiled code joins the keys."""
    number = 0
    for field, value in zip(shape.fields, values, strict=True):
        number = number << field.width | value
    return number


def in_words(number: int, words: int) -> list[int]:
    """Split a number into 64-bit words, the lowest first."""
    return [number >> (64 * i) & ((1 << 64) - 1) for i in range(words)]


def as_bytes(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)
