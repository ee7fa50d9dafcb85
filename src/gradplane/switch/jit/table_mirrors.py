"""A table's native mirror, updated with the runtime's table.

The mirror is notified of each change (MatchTable.watchers) and writes one record. Changes of an
action profile are written before native code runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.jit.cell_lists import CellList, cell_memory
from gradplane.switch.jit.entry_records import make_records
from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.selector_choices import Choices
from gradplane.switch.jit.table_layout import ActionPart, Shape
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.shared_memory import address_of


class TableMirror:
    """The mirror of one table; `direct` is the block of the direct and plain ones."""

    def __init__(
        self, table: MatchTable, shape: Shape, set_word: SetWord, direct: npt.NDArray[np.uint8]
    ) -> None:
        self.table = table
        self.shape = shape
        self._default = Memory(shape.word("default"), set_word, max(shape.entry.size, 16))
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
    """Return the masks of an action's parameters."""
    return [(1 << (p.type.width if isinstance(p.type, Bits) else 1)) - 1 for p in action.params]


def _filled(part: ActionPart, head: bytes, numbers: bytes) -> bytes:
    return (head + numbers).ljust(part.size, b"\0")
