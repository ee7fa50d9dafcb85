"""Native mirrors of the runtime's tables, multicast groups, clone sessions and parser value sets.

A table's mirror is notified of each change (MatchTable.watchers) and writes one record. Changes of
an action profile are written before native code runs.

The records of a table's entries differ by kind of table; kinds and layouts are described in
gradplane.switch.jit.table_layout. `CellList` says where the cells of a table's direct register are,
for compiled code that sets all of them.

A table with an action profile has choices. Each target in use (a member, a group, a one-shot group)
has a run of choices: action parts that entries refer to by the first one's number and their number.
The first two of all are the table's default action, if it is one, and the action for an empty
group.

Multicast groups, clone sessions and value sets are compared before native code runs, and updated if
the originals changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.jit.externs import value_set_word
from gradplane.switch.jit.hash_tables import Hash, Lpm, Tuples, joined
from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.parsers import member_bytes
from gradplane.switch.jit.table_layout import CELLS, PLAIN_RECORD, ActionPart, Shape
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction
from gradplane.switch.runtime.lookup import entry_values
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.shared_memory import address_of
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.valuesets import ParserValueSet

FIXED = 2  # choices that are always there
SLACK = 1024  # choices that may be unused before all are written anew


@dataclass(slots=True)
class _Run:
    """The choices of a target. `users`: the entries with this target, by their id()."""

    actions: list[ActionData]
    first: int
    users: dict[int, Entry] = field(default_factory=dict)

    @property
    def numbers(self) -> bytes:
        return self.first.to_bytes(4, "little") + len(self.actions).to_bytes(4, "little")


class Choices:
    """The choices of one table.

    encode: returns an action part of `size` bytes for an action, given whether it is an entry's.
    moved: called with entries whose numbers have changed."""

    def __init__(
        self,
        table: MatchTable,
        memory: Memory,
        size: int,
        encode: Callable[[ActionData, bool], bytes],
        moved: Callable[[Entry, bytes], None],
    ) -> None:
        self._table = table
        self._memory = memory
        self._size = size
        self._encode = encode
        self._moved = moved
        self._runs: dict[EntryAction, _Run] = {}
        self._targets: dict[int, EntryAction] = {}  # by the entry's id()
        self._end = FIXED
        self._used = FIXED
        self._seen: object = None  # of the profile, when the runs were last compared with it

    def set_fixed(self) -> None:
        """Write the default action and that for an empty group."""
        default, empty = self._table.default, self._table.for_empty_group
        default = default if isinstance(default, ActionData) else empty
        for at, action in enumerate((default, empty)):
            self._write(at, [action], False)

    def take(self, entry: Entry) -> bytes:
        """Return the numbers for an entry that is new, or has a new target."""
        self.drop(entry)
        target = entry.action
        run = self._runs.get(target)
        if run is None:
            run = self._runs[target] = _Run([], 0)
            self._place(run, self._actions(target))
        run.users[id(entry)] = entry
        self._targets[id(entry)] = target
        return run.numbers

    def drop(self, entry: Entry) -> None:
        """Note that an entry no longer uses its target."""
        target = self._targets.pop(id(entry), None)
        if target is None:
            return
        run = self._runs[target]
        del run.users[id(entry)]
        if not run.users:
            self._used -= len(run.actions)
            del self._runs[target]

    def refresh(self) -> None:
        """Update the runs from the profile, if it changed."""
        profile = self._table.profile
        assert profile is not None, self._table.table.name
        seen = profile.changes, profile.links.down, profile.member_states()
        if seen != self._seen:
            self._seen = seen
            for target, run in self._runs.items():
                actions = self._actions(target)
                if actions != run.actions:
                    self._place(run, actions)

    def _actions(self, target: EntryAction) -> list[ActionData]:
        return self._table.members(target)

    def _place(self, run: _Run, actions: list[ActionData]) -> None:
        """Give a run other actions: in its place if there are as many, else after all others."""
        before, run.actions = run.actions, actions
        if len(actions) != len(before):
            self._used += len(actions) - len(before)
            run.first, self._end = self._end, self._end + len(actions)
        self._write(run.first, actions, True)
        if len(actions) != len(before):
            for entry in run.users.values():
                self._moved(entry, run.numbers)
        if self._end > 2 * self._used + SLACK:
            self._close_up()

    def _close_up(self) -> None:
        """Write all runs anew, without gaps."""
        self._end = self._used = FIXED
        for run in self._runs.values():
            actions, run.actions = run.actions, []
            self._place(run, actions)

    def _write(self, at: int, actions: list[ActionData], hit: bool) -> None:
        self._memory.grow((at + len(actions)) * self._size)
        self._memory.write(at * self._size, b"".join(self._encode(a, hit) for a in actions))


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
        self._rows = _rows(block, shape)
        self._used = np.zeros(1 << shape.bits, dtype=bool)
        self._default = b""

    def set_default(self, record: bytes) -> None:
        self._default = record.ljust(self.shape.stride, b"\0")
        free = ~self._used.reshape(self._rows.shape[:2])
        self._rows[free] = np.frombuffer(self._default, dtype=np.uint8)

    def insert(self, entry: Entry, part: bytes) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = True
        self._rows[at, 0] = np.frombuffer(part, dtype=np.uint8)

    modify = insert

    def delete(self, entry: Entry) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = False
        self._rows[at, 0] = np.frombuffer(self._default, dtype=np.uint8)


class _Plain:
    """Records of the values that each key's action assigns, and its tag."""

    def __init__(self, shape: Shape, block: npt.NDArray[np.uint8]) -> None:
        self.shape = shape
        self._rows = _rows(block, shape)
        self._tags = block[shape.tags : shape.tags + (1 << shape.bits)]
        self._used = np.zeros(1 << shape.bits, dtype=bool)
        self._default = b""

    def set_default(self, record: bytes) -> None:
        self._default = record
        free = ~self._used
        rows = free.reshape(self._rows.shape[:2])
        self._rows[rows] = np.frombuffer(record, dtype=np.uint8, offset=PLAIN_RECORD)
        self._tags[free] = record[0]

    def insert(self, entry: Entry, part: bytes) -> None:
        self._write(entry, part, True)

    modify = insert

    def delete(self, entry: Entry) -> None:
        self._write(entry, self._default, False)

    def _write(self, entry: Entry, part: bytes, used: bool) -> None:
        at = joined(self.shape, entry_values(entry))
        self._used[at] = used
        low = self.shape.low
        row = self._rows[at >> low, at & (1 << low) - 1]
        row[:] = np.frombuffer(part, dtype=np.uint8, offset=PLAIN_RECORD)
        self._tags[at] = part[0]


def _rows(block: npt.NDArray[np.uint8], shape: Shape) -> npt.NDArray[np.uint8]:
    """Return the records of a direct or plain table, by the key without its `low` bits and by
    these, a byte in each column."""
    size = 1 << shape.bits - shape.low, 1 << shape.low, shape.stride
    apart = shape.stride << shape.low + shape.turns
    steps = apart, shape.stride, 1
    return np.lib.stride_tricks.as_strided(block[shape.records :], size, steps)


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


_WORD = 8  # bytes


class CellList:
    """A number of cells, then the address of each, in no order, as 64-bit words."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self._memory = Memory(shape.word(CELLS), set_word)
        self._cells: list[Register] = []
        self._places: dict[Register, int] = {}

    def add(self, cell: Register) -> None:
        self._places[cell] = len(self._cells)
        self._cells.append(cell)
        self._memory.grow((1 + len(self._cells)) * _WORD)
        self._put(cell)

    def remove(self, cell: Register) -> None:
        """Remove a cell; the last one takes its place."""
        last, place = self._cells.pop(), self._places.pop(cell)
        if last is not cell:
            self._cells[place] = last
            self._places[last] = place
        self._put(last)

    def _put(self, cell: Register) -> None:
        """Write the address of a cell, if it is still there, and the number of cells."""
        if cell in self._places:
            at = (1 + self._places[cell]) * _WORD
            self._memory.write(at, address_of(cell_memory(cell)).to_bytes(_WORD, "little"))
        self._memory.write(0, len(self._cells).to_bytes(_WORD, "little"))


def cell_memory(cell: Register) -> memoryview[int]:
    """Return the bytes of a direct register's cell."""
    return memoryview(cell.memory).cast("B")  # type: ignore[arg-type]


class TableMirror:
    """The mirror of one table; `direct` is the block of the direct and plain ones."""

    def __init__(
        self, table: MatchTable, shape: Shape, set_word: SetWord, direct: npt.NDArray[np.uint8]
    ) -> None:
        self.table = table
        self.shape = shape
        self._default = Memory(shape.word("default"), set_word, max(shape.entry.size, 16))
        self._hit = shape.hit
        self._masks = [_masks(a.action) for a in table.table.actions]
        self._records = make_records(shape, set_word, direct)
        self._cells = None if shape.entry.register is None else CellList(shape, set_word)
        self._choices = None if shape.choice is None else self._make_choices(shape.choice, set_word)
        self._miss = Entry((), table.default)  # the default entry, as the choices know it
        self.default_set()
        if self._cells is not None and table.default_register is not None:
            self._cells.add(table.default_register)
        for entry in table.entries():
            self.inserted(entry)
        table.watchers.append(self)

    def inserted(self, entry: Entry) -> None:
        self._records.insert(entry, self._part(entry))
        if self._cells is not None and entry.register is not None:
            self._cells.add(entry.register)

    def modified(self, entry: Entry) -> None:
        self._records.modify(entry, self._part(entry))

    def deleted(self, entry: Entry) -> None:
        self._records.delete(entry)
        if self._cells is not None and entry.register is not None:
            self._cells.remove(entry.register)
        if self._choices is not None:
            self._choices.drop(entry)

    def default_set(self) -> None:
        default = self.table.default
        if self._choices is None:
            assert isinstance(default, ActionData), default
            record = self._action(self.shape.entry, default, False, self._head(None))
            self._records.set_default(record)
            self._default.write(0, record)
            return
        self._choices.set_fixed()
        self._choices.drop(self._miss)
        self._miss.action = default
        if isinstance(default, ActionData):
            self._refer_on_miss((0).to_bytes(4, "little") + (1).to_bytes(4, "little"))
        else:
            self._refer_on_miss(self._choices.take(self._miss))

    def _refer_on_miss(self, numbers: bytes) -> None:
        """Let the default entry refer to choices."""
        self._default.write(0, _filled(self.shape.entry, self._head(None), numbers))

    def refresh(self) -> None:
        """Write the changes of the action profile."""
        if self._choices is not None:
            self._choices.refresh()

    def _make_choices(self, part: ActionPart, set_word: SetWord) -> Choices:
        memory = Memory(self.shape.word("choices"), set_word)

        def encode(action: ActionData, hit: bool) -> bytes:
            return self._action(part, action, hit, b"")

        def moved(entry: Entry, numbers: bytes) -> None:
            if entry is self._miss:
                self._refer_on_miss(numbers)
            else:
                self._records.modify(entry, self._referring(entry, numbers))

        return Choices(self.table, memory, part.size, encode, moved)

    def _part(self, entry: Entry) -> bytes:
        if self._choices is not None:
            return self._referring(entry, self._choices.take(entry))
        assert isinstance(entry.action, ActionData), entry.action
        return self._action(self.shape.entry, entry.action, True, self._head(entry))

    def _referring(self, entry: Entry, numbers: bytes) -> bytes:
        """Return the action part of an entry that refers to choices."""
        return _filled(self.shape.entry, self._head(entry), numbers)

    def _head(self, entry: Entry | None) -> bytes:
        """Return the addresses in front of an action part; None: that of a miss."""
        part, table = self.shape.entry, self.table
        if not part.tag:
            return b""  # the tag comes behind the addresses, of which there are none
        found: list[memoryview[int] | None] = []
        if part.counter is not None:
            found.append((table.default_counter if entry is None else entry.counter).cells)
        if part.meter is not None:
            found.append((table.default_meter if entry is None else entry.meter).cells)
        if part.times is not None:
            found.append(None if entry is None else entry.times)
        if part.register is not None:
            cell = table.default_register if entry is None else entry.register
            assert cell is not None, table.table.name
            found.append(cell_memory(cell))
        if part.filter is not None:
            filter = table.default_filter if entry is None else entry.filter
            assert filter is not None, table.table.name
            found.append(memoryview(filter.cells).cast("B"))  # type: ignore[arg-type]
        numbers = (0 if cells is None else address_of(cells) for cells in found)
        return b"".join(number.to_bytes(8, "little") for number in numbers)

    def _action(self, part: ActionPart, data: ActionData, hit: bool, head: bytes) -> bytes:
        out = bytearray(part.size)
        out[: len(head)] = head
        tag = data.index | (self._hit if hit else 0)
        out[part.tag : part.tag + part.tag_bits // 8] = tag.to_bytes(part.tag_bits // 8, "little")
        places, masks = part.args[data.index], self._masks[data.index]
        for (at, size), mask, value in zip(places, masks, data.args, strict=True):
            if size:
                out[at : at + size] = (value & mask).to_bytes(size, "little")
        for at, size, value in part.constants[data.index]:
            out[at : at + size] = value.to_bytes(size, "little")
        return bytes(out)


def _masks(action: ir.Action) -> list[int]:
    """Return the masks of an action's parameters."""
    return [(1 << (p.type.width if isinstance(p.type, Bits) else 1)) - 1 for p in action.params]


def _filled(part: ActionPart, head: bytes, numbers: bytes) -> bytes:
    return (head + numbers).ljust(part.size, b"\0")


class GroupMirror:
    """Multicast groups and clone sessions: rows of (first replica, count) and of (first replica,
    count, truncate, class of service + 1 or 0 if there is no such session). The groups' replicas
    come first; an array of their own has all replicas' exclusion ids."""

    def __init__(self, state: State, groups: int, sessions: int, set_word: SetWord) -> None:
        self.state = state
        self._set = set_word
        self._seen: object = None
        self._groups = np.zeros((groups, 2), dtype=np.int64)
        self._sessions = np.zeros((sessions, 4), dtype=np.int64)
        for name, array in (("groups", self._groups), ("sessions", self._sessions)):
            set_word(name, int(array.__array_interface__["data"][0]))
        self._replicas = Memory("replicas", set_word)
        self._exclusions = Memory("exclusions", set_word)
        self._used: tuple[list[int], list[int]] = ([], [])

    def refresh(self) -> None:
        """Update both if one changed, or the ports that are down."""
        state, live = self.state, self.state.links.live
        changes = state.multicast.changes, state.clone_sessions.changes, state.links.down
        if changes == self._seen:
            return
        self._seen = changes
        replicas: list[int] = []
        exclusions: list[int] = []
        # Row by row: filling all would touch megabytes that hardly any program needs.
        for array, ids in ((self._groups, self._used[0]), (self._sessions, self._used[1])):
            array[ids] = 0
        self._used = list(state.multicast), list(state.clone_sessions)
        for id, members in state.multicast.items():
            _check("multicast group", id, len(self._groups))
            self._groups[id] = len(replicas) // 2, len(members)
            chosen = live(members)
            replicas += [n for r in chosen for n in (r.port, r.instance)]
            exclusions += [-1 if r.exclusion is None else r.exclusion for r in chosen]
        for id, session in state.clone_sessions.items():
            _check("clone session", id, len(self._sessions))
            count = len(session.replicas)
            service = session.class_of_service + 1
            self._sessions[id] = len(replicas) // 2, count, session.truncate, service
            chosen = live(session.replicas)
            replicas += [n for r in chosen for n in (r.port, r.instance)]
            exclusions += [-1 if r.exclusion is None else r.exclusion for r in chosen]
        whole = np.array(replicas, dtype=np.int64).tobytes()
        self._replicas.grow(len(whole))
        self._replicas.write(0, whole)
        whole = np.array(exclusions, dtype=np.int64).tobytes()
        self._exclusions.grow(len(whole))
        self._exclusions.write(0, whole)


def _check(what: str, id: int, there: int) -> None:
    if not 0 <= id < there:
        raise SwitchError(f"{what} {id} is not within 0 to {there - 1}")


class ValueSetMirror:
    """One parser value set."""

    def __init__(self, value_set: ParserValueSet, set_word: SetWord) -> None:
        self.value_set = value_set
        self._set = set_word
        self._seen: object = None
        self._seen_own: object = None
        self._members, self._own = (
            Memory(value_set_word(value_set.name, part), set_word)
            for part in ("members", "own members")
        )

    def refresh(self) -> None:
        found = self.value_set
        if found.members is self._seen and found.own is self._seen_own:
            return
        self._seen, self._seen_own = found.members, found.own
        for memory, own in ((self._members, False), (self._own, True)):
            whole = member_bytes(found, own)
            memory.grow(len(whole))
            memory.write(0, whole)
        self._set(value_set_word(found.name, "count"), len(found.members))
        self._set(value_set_word(found.name, "own count"), sum(map(len, found.own.values())))
