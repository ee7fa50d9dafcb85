"""A table's native copy, kept in step with the runtime's.

The mirror is told of each change (MatchTable.watcher) and writes one record. Tables with an action
profile are written anew before native code runs, if they or the profile changed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.jit.memory import Memory, SetWord
from gradplane.switch.jit.records import make_records
from gradplane.switch.jit.shapes import ActionPart, Shape
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
from gradplane.switch.runtime.meters import MeterCell
from gradplane.switch.runtime.tables import MatchTable


class TableMirror:
    """One table; `direct` is the block of the direct and plain ones."""

    def __init__(
        self, table: MatchTable, shape: Shape, set_word: SetWord, direct: npt.NDArray[np.uint8]
    ) -> None:
        self.table = table
        self.shape = shape
        self._default = Memory(shape.word("default"), set_word, max(shape.entry.size, 16))
        self._choices = Memory(shape.word("choices"), set_word)
        self._masks = [_masks(a.action) for a in table.table.actions]
        self._records = make_records(shape, set_word, direct)
        self._seen = -1  # the profile's changes when it was last written
        self._dirty = True
        self.default_set()
        for entry in table.entries():
            self.inserted(entry)
        table.watcher = self

    def inserted(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._records.insert(entry, self._part(entry))

    def modified(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._records.modify(entry, self._part(entry))

    def deleted(self, entry: Entry) -> None:
        self._dirty = True
        if self.table.profile is None:
            self._records.delete(entry)

    def default_set(self) -> None:
        self._dirty = True
        table, part = self.table, self.shape.entry
        head = _head(part, table.default_counter, table.default_meter, None)
        if table.profile is None:
            record = self._action(self.shape.entry, table.default, False, head)
            self._records.set_default(record)
        else:
            record = _filled(part, head, (0).to_bytes(4, "little") + (1).to_bytes(4, "little"))
        self._default.write(0, record)

    def refresh(self) -> None:
        """Writes what is left to write; a table with an action profile anew, if it or the profile
        changed."""
        profile = self.table.profile
        if profile is None or (not self._dirty and self._seen == profile.changes):
            self._records.refresh()
            return
        assert self.shape.choice is not None
        self._seen, self._dirty = profile.changes, False
        fixed = (self.table.default, self.table.for_empty_group)
        choices = [self._action(self.shape.choice, action, False, b"") for action in fixed]
        firsts: dict[Target, tuple[int, int]] = {}
        self._records.clear()
        for entry in self.table.entries():
            if entry.action not in firsts:
                found = self._members(entry.action)
                firsts[entry.action] = len(choices), len(found)
                choices += [self._action(self.shape.choice, a, True, b"") for a in found]
            first, count = firsts[entry.action]
            numbers = first.to_bytes(4, "little") + count.to_bytes(4, "little")
            head = _head(self.shape.entry, entry.counter, entry.meter, entry.times)
            self._records.insert(entry, _filled(self.shape.entry, head, numbers))
        whole = b"".join(choices)
        self._choices.grow(len(whole))
        self._choices.write(0, whole)
        self._records.refresh()

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
        places, masks = part.args[data.index], self._masks[data.index]
        for (at, size), mask, value in zip(places, masks, data.args, strict=True):
            if size:
                out[at : at + size] = (value & mask).to_bytes(size, "little")
        for at, size, value in part.constants[data.index]:
            out[at : at + size] = value.to_bytes(size, "little")
        return bytes(out)


def _masks(action: ir.Action) -> list[int]:
    """The masks of an action's parameters."""
    return [(1 << (p.type.width if isinstance(p.type, Bits) else 1)) - 1 for p in action.params]


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
