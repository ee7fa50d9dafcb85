"""The scopes of tables and externs: which pipes of a chip share one.

A step of the journal puts the former resources back, with what packets have counted since in those
that it takes away: counts are added, and cells that packets have set are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gradplane.switch.control.journal import Journal
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.entries import Count, Entry
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import COUNTS, Meter, MeterCell
from gradplane.switch.runtime.pipe_scopes import PipeScopes


class _Parts(NamedTuple):
    """The direct resources that an entry, or a table's misses, had."""

    counter: Count
    meter: MeterCell
    register: Register | None
    filter: Filter | None
    words: tuple[list[int], list[int], list[int]]  # of counter, meter and register then

    @classmethod
    def of(cls, owner: Entry | MatchTable) -> _Parts:
        if isinstance(owner, Entry):
            found = owner.counter, owner.meter, owner.register, owner.filter
        else:
            found = (owner.default_counter, owner.default_meter, owner.default_register,
                     owner.default_filter)  # fmt: skip
        counter, meter, register, _ = found
        words = counter.cells.tolist(), meter.cells.tolist(), [] if register is None else [
            *register.cells
        ]  # fmt: skip
        return cls(*found, words)

    def restore(self) -> None:
        """Make them what they were, with what packets have counted in them since."""
        counts, meter, cells = self.words
        self.counter.packets += counts[0]
        self.counter.bytes += counts[1]
        since = self.meter.cells[COUNTS:].tolist()
        self.meter.restore(meter)
        for i, more in enumerate(since, COUNTS):
            self.meter.cells[i] += more
        for i, cell in enumerate(cells):
            assert self.register is not None
            if self.register.cells[i] == self.register.initial:
                self.register.cells[i] = cell

    def add(self, other: _Parts) -> None:
        """Add what packets have counted in others, which began at 0."""
        self.counter.packets += other.counter.packets
        self.counter.bytes += other.counter.bytes
        _add_colours(self.meter, other.meter)


class TableMemory(NamedTuple):
    """A table before it begins anew: its entries, the default one, and their parts."""

    table: MatchTable
    entries: list[tuple[Entry, _Parts]]
    default: Any
    metadata: tuple[int, bytes]
    parts: _Parts

    @classmethod
    def of(cls, table: MatchTable) -> TableMemory:
        entries = [(entry, _Parts.of(entry)) for entry in table.entries()]
        return cls(table, entries, table.default, table.default_metadata, _Parts.of(table))

    def restore(self) -> None:
        now = {(e.matches, e.priority): e for e in self.table.entries()}
        for entry in now.values():
            if not any(entry is former for former, _ in self.entries):
                self.table.take_out(entry)
        for entry, parts in self.entries:
            there = now.get((entry.matches, entry.priority))
            if there is entry:
                parts.restore()
                continue
            self.table.restore(entry)
            if there is not None:
                parts.add(_Parts.of(there))
        self.parts.restore()
        self.table.put_default(self.default)
        self.table.default_metadata = self.metadata


class Scopes:
    """Sets the scopes of a switch's resources."""

    def __init__(self, journal: Journal, scopes: PipeScopes) -> None:
        self._journal, self._scopes = journal, scopes

    def set(self, name: str, groups: Iterable[Iterable[int]]) -> None:
        """Let groups of pipes share a resource; raises TableError as PipeScopes.set does."""
        scopes, former = self._scopes, self._scopes.memory(name)
        first = scopes.pipes[scopes.homes(name)[0]]
        tables = [TableMemory.of(first.tables[each]) for each in former.names.get("tables", ())]
        scopes.set(name, groups)

        def step() -> None:
            taken = list(_taken(former.objects, scopes.memory(name).objects))
            scopes.restore(former)
            for kept, gone in taken:
                _add(kept, gone)
            for table in tables:
                table.restore()

        self._journal.record(step)


def _taken(former: dict[tuple[str, str, int], Any], now: dict[tuple[str, str, int], Any]
           ) -> Iterator[tuple[Any, Any]]:  # fmt: skip
    """Yield each resource that goes, beside the one that its first pipe had before."""
    kept, seen = {id(one) for one in former.values()}, set[int]()
    for place, gone in now.items():
        if id(gone) not in kept and id(gone) not in seen:
            seen.add(id(gone))
            yield former[place], gone


def _add(kept: Any, gone: Any) -> None:
    """Add what packets have counted in a resource that goes to the one that comes back."""
    match kept:
        case Counter():
            kept.packets[:] += gone.packets
            kept.bytes[:] += gone.bytes
        case Meter():
            for i in range(kept.size):
                _add_colours(kept.cell(i), gone.cell(i))
        case MatchTable():
            _Parts.of(kept).add(_Parts.of(gone))
            for entry in gone.entries():
                there = kept.find(entry.matches, entry.priority)
                if there is not None:
                    _Parts.of(there).add(_Parts.of(entry))


def _add_colours(kept: MeterCell, gone: MeterCell) -> None:
    for i, more in enumerate(gone.cells[COUNTS:].tolist(), COUNTS):
        kept.cells[i] += more
