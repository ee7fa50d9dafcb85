"""Native copies of tables, groups and value sets, kept in step with the runtime's.

A table's mirror is told of each change (MatchTable.watcher) and writes one record. Groups, action
profiles and value sets are looked at before native code runs, and copied again if they changed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.jit.pipeline import GROUPS
from gradplane.switch.jit.shapes import TOMBSTONE, ActionPart, Shape, hashed
from gradplane.switch.jit.valuesets import member_bytes, set_word
from gradplane.switch.runtime.cells import address_of
from gradplane.switch.runtime.entries import (
    ActionData,
    Count,
    Entry,
    GroupRef,
    MemberRef,
    OneShot,
    Target,
)
from gradplane.switch.runtime.errors import SwitchError
from gradplane.switch.runtime.lookup import entry_masks, entry_values
from gradplane.switch.runtime.meters import MeterCell
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.tables import MatchTable
from gradplane.switch.runtime.valuesets import ParserValueSet

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
        """Makes room for at least `size` bytes."""
        if size <= len(self.array) and len(self.array):
            return
        bigger = np.zeros(max(size, 2 * len(self.array), 64), dtype=np.uint8)
        bigger[: len(self.array)] = self.array
        self.array = bigger
        self.view = memoryview(bigger)  # type: ignore[arg-type]
        self._set_word(self._name, int(bigger.__array_interface__["data"][0]))

    def write(self, at: int, data: bytes) -> None:
        self.view[at : at + len(data)] = data


class TableMirror:
    """One table."""

    def __init__(self, table: MatchTable, shape: Shape, set_word: SetWord) -> None:
        self.table = table
        self.shape = shape
        self._set = lambda part, value: set_word(shape.word(part), value)
        word = shape.word
        self._default = Memory(word("default"), set_word, max(shape.entry.size, 16))
        self._choices = Memory(word("choices"), set_word)
        self._encoders = [_encoder(a.action) for a in table.table.actions]
        self._store = _STORES[shape.kind](shape, set_word)
        self._seen: tuple[int, int] | None = None
        self._dirty = True
        self.default_set()
        for entry in table.entries():
            self.inserted(entry)
        table.watcher = self

    def inserted(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._store.insert(entry, self._part(entry))

    def modified(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._store.modify(entry, self._part(entry))

    def deleted(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._store.delete(entry)

    def default_set(self) -> None:
        self._dirty = True
        table, part = self.table, self.shape.entry
        head = _head(part, table.default_counter, table.default_meter, None)
        if table.profile is None:
            record = self._action(self.shape.entry, table.default, False, head)
            self._store.set_default(record)
        else:
            record = _filled(part, head, (0).to_bytes(4, "little") + (1).to_bytes(4, "little"))
        self._default.write(0, record)

    def refresh(self) -> None:
        """Writes a table with an action profile anew, if it or the profile changed."""
        profile = self.table.profile
        assert profile is not None and self.shape.choice is not None
        if not self._dirty and self._seen == profile.changes:
            return
        self._seen, self._dirty = profile.changes, False
        choices = [self._action(self.shape.choice, self.table.default, False, b"")]
        firsts: dict[Target, tuple[int, int]] = {}
        self._store.clear()
        for entry in self.table.entries():
            if entry.action not in firsts:
                found = self._members(entry.action)
                firsts[entry.action] = len(choices), len(found)
                choices += [self._action(self.shape.choice, a, True, b"") for a in found]
            first, count = firsts[entry.action]
            numbers = first.to_bytes(4, "little") + count.to_bytes(4, "little")
            head = _head(self.shape.entry, entry.counter, entry.meter, entry.times)
            self._store.insert(entry, _filled(self.shape.entry, head, numbers))
        whole = b"".join(choices)
        self._choices.grow(len(whole))
        self._choices.write(0, whole)

    def _members(self, target: Target) -> list[ActionData]:
        """The actions that an entry's selection chooses among."""
        profile = self.table.profile
        assert profile is not None
        match target:
            case ActionData():
                return [target]
            case OneShot(actions=actions):
                return [a for a, weight, _ in actions for _ in range(weight)]
            case MemberRef(id=id):
                return [profile.members[id]] if id in profile.members else []
            case GroupRef(id=id):
                group = profile.groups.get(id)
                return [] if group is None else [profile.members[m] for m in group.choices]
        raise AssertionError(target)

    def _part(self, entry: Entry) -> bytes:
        assert isinstance(entry.action, ActionData), entry.action
        head = _head(self.shape.entry, entry.counter, entry.meter, entry.times)
        return self._action(self.shape.entry, entry.action, True, head)

    def _action(self, part: ActionPart, data: ActionData, hit: bool, head: bytes) -> bytes:
        out = bytearray(part.size)
        out[: len(head)] = head
        tag = data.index | (self.shape.hit if hit else 0)
        out[part.tag : part.tag + part.tag_bits // 8] = tag.to_bytes(part.tag_bits // 8, "little")
        places, masks = part.args[data.index], self._encoders[data.index]
        for (at, size), mask, value in zip(places, masks, data.args, strict=True):
            out[at : at + size] = (value & mask).to_bytes(size, "little")
        return bytes(out)


def _encoder(action: ir.Action) -> list[int]:
    """The masks of an action's parameters."""
    return [
        (1 << (p.type.width if isinstance(p.type, Bits) else 1)) - 1 for p in action.params
    ]


def _head(
    part: ActionPart, counter: Count, meter: MeterCell, times: memoryview[int] | None
) -> bytes:
    """The addresses in front of an action part."""
    out = b""
    if part.counter is not None:
        out += address_of(counter.cells).to_bytes(8, "little")
    if part.meter is not None:
        out += address_of(meter.cells).to_bytes(8, "little")
    if part.times is not None:
        out += (address_of(times) if times is not None else 0).to_bytes(8, "little")
    return out


def _filled(part: ActionPart, head: bytes, numbers: bytes) -> bytes:
    return (head + numbers).ljust(part.size, b"\0")


# -- records by kind of table -------------------------------------------------------------------


class _None:
    """No key, no entries."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape

    def set_default(self, record: bytes) -> None: ...

    def clear(self) -> None: ...

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


class _Records:
    """Numbered records; `slots` by the serial of the entry."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self.shape = shape
        self._set = lambda part, value: set_word(shape.word(part), value)
        self.memory = Memory(shape.word("records"), set_word)
        self.slots: dict[int, int] = {}
        self._free: list[int] = []
        self._next = 0

    def set_default(self, record: bytes) -> None: ...

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


class _Hash(_Records):
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
        self._set("index", int(self._index.__array_interface__["data"][0]))
        self._set("mask", capacity - 1)


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
        self._set("count", len(self._groups))


class _Scan(_Records):
    """Record numbers in order of precedence."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        super().__init__(shape, set_word)
        self._ranked: list[tuple[int, int, int]] = []  # -priority, serial, record number
        self._order = Memory(shape.word("order"), set_word)

    def insert(self, entry: Entry, part: bytes) -> None:
        slot = self.place(entry, self._key(entry), part)
        insort(self._ranked, (-entry.priority, entry.serial, slot))
        self._write_order()

    def delete(self, entry: Entry) -> None:
        slot = self.drop(entry)
        self._ranked.remove((-entry.priority, entry.serial, slot))
        self._write_order()

    def clear(self) -> None:
        super().clear()
        self._ranked.clear()
        self._write_order()

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

    def _write_order(self) -> None:
        out = np.fromiter((slot for _, _, slot in self._ranked), np.uint32, len(self._ranked))
        self._order.grow(out.nbytes)
        self._order.write(0, out.tobytes())
        self._set("count", len(out))


_STORES: dict[str, Callable[[Shape, SetWord], _None | _Direct | _Hash | _Prefix | _Scan]] = {
    "none": _None, "direct": _Direct, "hash": _Hash, "prefix": _Prefix, "scan": _Scan,
}  # fmt: skip


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


# -- groups and value sets ----------------------------------------------------------------------


class GroupMirror:
    """Multicast groups and clone sessions: rows of (first replica, count) and of (first replica, count,
    truncate, whether it exists)."""

    def __init__(self, state: State, set_word: SetWord) -> None:
        self.state = state
        self._set = set_word
        self._seen: tuple[int, int] | None = None
        self._groups = np.zeros((GROUPS, 2), dtype=np.int64)
        self._sessions = np.zeros((GROUPS, 4), dtype=np.int64)
        for name, array in (("groups", self._groups), ("sessions", self._sessions)):
            set_word(name, int(array.__array_interface__["data"][0]))
        self._replicas = Memory("replicas", set_word)

    def refresh(self) -> None:
        """Copies both if one changed."""
        state = self.state
        changes = state.multicast.changes, state.clone_sessions.changes
        if changes == self._seen:
            return
        self._seen = changes
        replicas: list[int] = []
        self._groups.fill(0)
        self._sessions.fill(0)
        for id, members in state.multicast.items():
            self._check("multicast group", id)
            self._groups[id] = len(replicas) // 2, len(members)
            replicas += [n for r in members for n in (r.port, r.instance)]
        for id, session in state.clone_sessions.items():
            self._check("clone session", id)
            count = len(session.replicas)
            self._sessions[id] = len(replicas) // 2, count, session.truncate, 1
            replicas += [n for r in session.replicas for n in (r.port, r.instance)]
        whole = np.array(replicas, dtype=np.int64).tobytes()
        self._replicas.grow(len(whole))
        self._replicas.write(0, whole)

    def _check(self, what: str, id: int) -> None:
        if not 0 <= id < GROUPS:
            raise SwitchError(f"{what} {id} is not within 0 to {GROUPS - 1}")


class ValueSetMirror:
    """One parser value set."""

    def __init__(self, value_set: ParserValueSet, set_word: SetWord) -> None:
        self.value_set = value_set
        self._set = set_word
        self._seen: object = None
        self._members = Memory(set_word_name(value_set, "members"), set_word)

    def refresh(self) -> None:
        members = self.value_set.members
        if members is self._seen:
            return
        self._seen = members
        whole = member_bytes(self.value_set)
        self._members.grow(len(whole))
        self._members.write(0, whole)
        self._set(set_word_name(self.value_set, "count"), len(members))


def set_word_name(value_set: ParserValueSet, part: str) -> str:
    return set_word(value_set.name, part)
