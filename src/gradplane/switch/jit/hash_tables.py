"""Records that are found by hash: those of exact keys, and of keys with prefixes.

Layouts: gradplane.switch.jit.table_layout.

Those of ternary, range and optional fields are found by tuple space search. An entry has a record
for each of its pairs of masks and values (runtime.match_masks), usually one. Records with equal
masks are a group; within it they are found by hash, those with the same masked key in a chain, the
first in precedence in front.

A filter gives the groups that a key can be in. For each byte of the key and each of its values
there is a row of bits, one for each group: set if some entry of the group allows that value there.
The groups that a key can be in are those whose bits are set in all of its bytes' rows; as a rule
few, however many masks there are.

A bit stays until its group is removed; it then costs a lookup that misses.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from struct import pack

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.table_layout import TOMBSTONE, Shape, hashed
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.lookup import entry_values
from gradplane.switch.runtime.match_masks import LONG, Key, Masked, in_parts, whole


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
        if not shape.short:
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
        words, length = super().key(entry), self._length(entry)
        return [words[0] | length << self.shape.bits] if self.shape.short else [*words, length]

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
    for one, value in zip(shape.fields, values, strict=True):
        number = number << one.width | value
    return number


def in_words(number: int, words: int) -> list[int]:
    """Split a number into 64-bit words, the lowest first."""
    return [number >> (64 * i) & ((1 << 64) - 1) for i in range(words)]


def as_bytes(words: Sequence[int]) -> bytes:
    return pack(f"<{len(words)}Q", *words)


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


BIAS = 1 << 20  # entries in the source may have priorities below 0

Words = tuple[int, ...]


@dataclass(slots=True)
class _Group:
    """The entries with the same masks.

    parts: the bytes of a key that the masks cover. chains: the records with one key, as (negative
    rank, number). best: an upper bound of the ranks."""

    number: int
    masks: Words
    parts: list[tuple[int, int]]
    chains: dict[Words, list[tuple[int, int]]] = field(default_factory=dict)
    best: int = 0


class Tuples(Numbered):
    """A tuple space; a group's number is its place in `order` and in the guard."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        self.index = Index(self)
        self._groups: dict[Key, _Group] = {}
        self._free_groups: list[int] = []
        self._row = 8 * (shape.words + 2)  # bytes of a group in `order`
        self._order = Memory(shape.word("order"), set_word)
        self._guard = Guard(shape.guarded, self._guard_moved)
        self._placed: dict[int, list[tuple[Key, Words, int]]] = {}  # by the entry's id()

    def insert(self, entry: Entry, part: bytes) -> None:
        rank, bounds, placed = rank_of(entry), self._bounds(entry), []
        for masks, values in self._pairs(entry):
            group = self._group(masks)
            number = joined(self.shape, values)
            words = self._key(group, number)
            key = as_bytes(words) + rank.to_bytes(8, "little") + bytes(8) + bounds
            slot = self.place(key + part)
            placed.append((masks, words, slot))
            self._link(group, words, rank, slot)
            self._guard.add(group.number, group.parts, number)
            if rank > group.best:
                group.best = rank
                self._write(group.number, group.masks, rank)
        self._placed[id(entry)] = placed

    def modify(self, entry: Entry, part: bytes) -> None:
        for _, _, slot in self._placed[id(entry)]:
            self.rewrite(slot, part)

    def delete(self, entry: Entry) -> None:
        rank = rank_of(entry)
        for masks, words, slot in self._placed.pop(id(entry)):
            group = self._groups[masks]
            self._unlink(group, words, rank, slot)
            self.drop(slot)
            if not group.chains:
                self._close(masks)

    def _pairs(self, entry: Entry) -> list[Masked]:
        """Return masks and values; several if an entry's ranges would go to a long chain."""
        fields = self.shape.fields
        masks, values = whole(entry, fields)
        if self.shape.ranges and masks in self._groups:
            group = self._groups[masks]
            key = self._key(group, joined(self.shape, values))
            if len(group.chains.get(key, ())) >= LONG:
                return in_parts(entry, fields)
        return [(masks, values)]

    def _group(self, masks: Key) -> _Group:
        group = self._groups.get(masks)
        if group is None:
            number = self._free_groups.pop() if self._free_groups else len(self._groups)
            whole = joined(self.shape, masks)
            words = tuple(in_words(whole, self.shape.words))
            group = _Group(number, words, self._guard.open(number, whole))
            self._groups[masks] = group
            self._order.grow((number + 1) * self._row)
            self.set("count", len(self._groups) + len(self._free_groups))
        return group

    def _close(self, masks: Key) -> None:
        """Remove an empty group."""
        group = self._groups.pop(masks)
        self._free_groups.append(group.number)
        self._guard.close(group.number)
        self._write(group.number, group.masks, 0)

    def _write(self, number: int, masks: Words, best: int) -> None:
        """Write a group's row in `order`."""
        self._order.write(number * self._row, as_bytes([*masks, number, best]))

    def _guard_moved(self, address: int, row: int) -> None:
        self.set("guard", address)
        self.set("row", row)

    def _key(self, group: _Group, value: int) -> Words:
        return (*in_words(value, self.shape.words), group.number)

    def _link(self, group: _Group, words: Words, rank: int, slot: int) -> None:
        chain = group.chains.setdefault(words, [])
        insort(chain, (-rank, slot))
        at = bisect_left(chain, (-rank, slot))
        if len(chain) == 1:
            self.index.add(slot, words)
        elif at == 0:
            self.index.replace(chain[1][1], slot)
        else:
            self._point(chain[at - 1][1], slot)
        if at + 1 < len(chain):
            self._point(slot, chain[at + 1][1])

    def _unlink(self, group: _Group, words: Words, rank: int, slot: int) -> None:
        chain = group.chains[words]
        at = bisect_left(chain, (-rank, slot))
        del chain[at]
        following = chain[at][1] if at < len(chain) else None
        if not chain:
            self.index.remove(slot)
            del group.chains[words]
        elif at == 0:
            assert following is not None
            self.index.replace(slot, following)
        else:
            self._point(chain[at - 1][1], following)

    def _point(self, slot: int, following: int | None) -> None:
        """Set a record's successor in its chain: number plus 1, or 0."""
        number = 0 if following is None else following + 1
        at = slot * self.shape.stride + self.shape.next_at
        self.memory.write(at, number.to_bytes(8, "little"))

    def _bounds(self, entry: Entry) -> bytes:
        out = b""
        for i in self.shape.ranges:
            found, match = self.shape.fields[i], entry.matches[i]
            half = 1 << found.width >> 1 if found.signed else 0
            low, high = match if match is not None else (half, half ^ found.full)
            size = 8 * -(-found.width // 64)
            out += low.to_bytes(size, "little") + high.to_bytes(size, "little")
        return out


def rank_of(entry: Entry) -> int:
    """Return the rank, of which the larger goes first: by priority, then by age."""
    return (entry.priority + BIAS) << 32 | (0xFFFF_FFFF - entry.serial)
