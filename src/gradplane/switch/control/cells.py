"""Cells that packets write, too: counters, meters, registers, filters; and parser value sets.

A step of the journal takes back what the control plane wrote, and no more. A counter loses what was
added to it and keeps what packets have counted since; a meter gets its rates back, and its tokens
unless packets have taken some; a register's cell stays as it is if a packet has set it since.

A direct counter or meter, of a table entry, is an array of one cell.

A chip's driver has a copy of the counters and registers that it wrote or read. `seen` returns a
cell as it is there; `sync` reads the cells into it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradplane.switch.control.journal import Journal
from gradplane.switch.control.kind import Kind, Record
from gradplane.switch.runtime.arrays import MASK64, Counter, Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.meters import CELL_WORDS, COUNTS, Meter, MeterCell
from gradplane.switch.runtime.pipe_scopes import PipeScopes
from gradplane.switch.runtime.valuesets import Member, ParserValueSet

_TOKENS, _PERIOD = slice(6, 9), 9  # words of a meter's cell


class Cells(Kind[int]):
    """The cells of an array, which are there from the start: a write sets those fields that are
    given, and deleting a cell sets it to its initial value."""

    def __init__(self, journal: Journal, size: int) -> None:
        super().__init__(journal)
        self.size = size

    @abstractmethod
    def get(self, key: int) -> Record: ...

    @abstractmethod
    def initial(self, key: int) -> Record:
        """Return the record of a cell at the start."""

    def existing(self) -> range:
        return range(self.size)

    def insert(self, key: int, /, **values: Any) -> None:
        self.modify(key, **values)

    def write(self, key: int, /, **values: Any) -> None:
        self.modify(key, **values)

    def delete(self, key: int) -> None:
        self.put(key, self.initial(key))

    def fill(self, **values: Any) -> None:
        """Write the same to all cells."""
        for key in self.existing():
            self.write(key, **values)

    def touched(self) -> Iterable[int]:
        """Return the cells that may differ from the start."""
        return self.existing()


class SeenCells(Cells):
    """Cells of which the array keeps those that the control plane wrote or read last."""

    @property
    @abstractmethod
    def _seen(self) -> dict[int, Any]:
        """Return the cells that were seen, by index; the others as `_unseen`."""

    @property
    @abstractmethod
    def _unseen(self) -> Any:
        """Return what all other cells were seen as."""

    @abstractmethod
    def _forget(self) -> None:
        """See all cells as at the start."""

    @abstractmethod
    def _record(self, value: Any) -> Record:
        """Return the record of a cell that was seen."""

    @abstractmethod
    def _read(self, key: int) -> Any:
        """Return the memory of a cell, as it is seen."""

    def seen(self, key: int) -> Record:
        """Return a cell as the control plane saw it last."""
        return self._record(self._seen.get(key, self._unseen))

    def sync(self, key: int | None = None) -> None:
        """See a cell, or all cells, as they are now."""
        if key is None:
            self._forget()
        for one in self.touched() if key is None else (key,):
            self._seen[one] = self._read(one)


class Counters(SeenCells):
    """The packets and bytes of a counter, or of one entry's; raises TableError OUT_OF_RANGE."""

    name = "counter"

    def __init__(self, journal: Journal, counter: Counter | Count) -> None:
        super().__init__(journal, 1 if isinstance(counter, Count) else counter.size)
        self.counter = counter

    def get(self, key: int) -> Record:
        return self._record(self._read(key))

    def initial(self, key: int) -> Record:
        return {"packets": 0, "bytes": 0}

    def put(self, key: int, record: Record | None) -> None:
        packets, nbytes = (0, 0) if record is None else (record["packets"], record["bytes"])
        former, seen = self._read(key), self._seen.get(key, self._unseen)
        self._write_cell(key, packets, nbytes)
        self.sync(key)
        more = (packets & MASK64) - former[0], (nbytes & MASK64) - former[1]

        def step() -> None:
            now = self._read(key)
            self._write_cell(key, now[0] - more[0], now[1] - more[1])
            self._seen[key] = seen

        self.journal.record(step)

    def clear(self) -> None:
        self.fill(packets=0, bytes=0)

    def fill(self, **values: int) -> None:
        """Write the packets and bytes of all cells, of which there may be a million, at once."""
        counter = self.counter
        if isinstance(counter, Count):
            return self.put(0, values)
        written = values["packets"] & MASK64, values["bytes"] & MASK64
        arrays, seen = (counter.packets, counter.bytes), (counter.seen, counter.unseen)
        added = [np.uint64(new) - array for new, array in zip(written, arrays, strict=True)]
        for array, new in zip(arrays, written, strict=True):
            array.fill(new)
        counter.seen, counter.unseen = {}, written

        def step() -> None:
            for array, more in zip(arrays, added, strict=True):
                array -= more
            counter.seen, counter.unseen = seen

        self.journal.record(step)
        return None

    def touched(self) -> Iterable[int]:
        if isinstance(self.counter, Count):
            return (0,)
        return map(int, np.flatnonzero(self.counter.packets | self.counter.bytes))

    @property
    def _seen(self) -> dict[int, tuple[int, int]]:
        if self.counter.seen is None:
            self.counter.seen = {}
        return self.counter.seen

    @property
    def _unseen(self) -> tuple[int, int]:
        return (0, 0) if isinstance(self.counter, Count) else self.counter.unseen

    def _forget(self) -> None:
        self._seen.clear()
        if isinstance(self.counter, Counter):
            self.counter.unseen = 0, 0

    def _record(self, value: tuple[int, int]) -> Record:
        return {"packets": value[0], "bytes": value[1]}

    def _read(self, index: int) -> tuple[int, int]:
        counter = self.counter
        if isinstance(counter, Count):
            return counter.packets, counter.bytes
        return counter.read(index)

    def _write_cell(self, index: int, packets: int, nbytes: int) -> None:
        if isinstance(self.counter, Count):
            self.counter.packets, self.counter.bytes = packets, nbytes
        else:
            self.counter.write(index, packets, nbytes)


class Meters(Cells):
    """The rates of a meter, or of one entry's: `config`, None where every packet is green. A write
    fills the buckets; `clear`: it sets the counts per colour to 0, too. `clock`: in ns."""

    name = "meter"

    def __init__(
        self, journal: Journal, meter: Meter | MeterCell, clock: Callable[[], int]
    ) -> None:
        super().__init__(journal, 1 if isinstance(meter, MeterCell) else meter.size)
        self.meter, self._clock = meter, clock

    def get(self, key: int) -> Record:
        return {"config": self.cell(key).config, "clear": False}

    def initial(self, key: int) -> Record:
        return {"config": None, "clear": False}

    def put(self, key: int, record: Record | None) -> None:
        cell = self.cell(key)
        former = cell.cells.tolist()
        cell.configure(None if record is None else record["config"], self._clock())
        if record is not None and record["clear"]:
            cell.clear_counts()
        written = cell.cells.tolist()
        self.journal.record(_take_meter_back, cell.cells, former, written)

    def touched(self) -> Iterable[int]:
        if isinstance(self.meter, MeterCell):
            return (0,)
        cells = self.meter.memory.reshape(-1, len(CELL_WORDS))
        return map(int, np.flatnonzero(cells.any(axis=1)))

    def cell(self, key: int) -> MeterCell:
        """Return a cell; raises TableError OUT_OF_RANGE."""
        return self.meter if isinstance(self.meter, MeterCell) else self.meter.cell(key)


class Adjustments(Kind[tuple[str, int]]):
    """The bytes that are added to what a meter measures, None: the program's, by the meter's name
    and the pipe, or the first of those that share the meter."""

    name = "byte adjustment"

    def __init__(self, journal: Journal, scopes: PipeScopes) -> None:
        super().__init__(journal)
        self._scopes = scopes

    def existing(self) -> Iterable[tuple[str, int]]:
        return (key for key in self.keys() if self._of(key).bytes is not None)

    def keys(self, name: str = "") -> list[tuple[str, int]]:
        """Return the keys of the meters that there are, or of one in all pipes."""
        names = [name] if name else self._scopes.pipes[0].adjustments
        return [(one, pipes[0]) for one in names for pipes in self._scopes.groups(one)]

    def get(self, key: tuple[str, int]) -> Record | None:
        known = key[0] in self._scopes.pipes[0].adjustments
        return {"bytes": self._of(key).bytes} if known else None

    def _of(self, key: tuple[str, int]) -> ByteAdjustment:
        return self._scopes.pipes[key[1]].adjustments[key[0]]

    def put(self, key: tuple[str, int], record: Record | None) -> None:
        self.set(self._of(key), None if record is None else record["bytes"])

    def set(self, adjustment: ByteAdjustment, number: int | None) -> None:
        """Set one of some pipes."""
        former = adjustment.bytes
        adjustment.set(number)
        self.journal.record(adjustment.set, former)


class Registers(SeenCells):
    """The cells of a register, in all pipes that it is in; raises TableError."""

    name = "register"

    def __init__(self, journal: Journal, register: Register) -> None:
        super().__init__(journal, register.size)
        self.register = register

    def get(self, key: int) -> Record:
        return {"value": self.register.read(key)}

    def initial(self, key: int) -> Record:
        return {"value": self.register.initial}

    def modify(self, key: int, /, **values: Any) -> None:
        self.put(key, values)

    def put(self, key: int, record: Record | None) -> None:
        value = self.register.initial if record is None else record["value"]
        former = [
            (one, one.cells[key], one.seen.get(key, one.unseen))
            for one in self._copies() if 0 <= key < one.size
        ]  # fmt: skip
        self.register.write(key, value)
        for one in self._copies():
            one.seen[key] = value

        def step() -> None:
            for one, old, seen in former:
                one.seen[key] = seen
                if one.cells[key] == value:
                    one.cells[key] = old

        self.journal.record(step)

    def clear(self) -> None:
        self._set_all(self.register.clear)

    def fill(self, **values: int) -> None:
        """Write all cells, of which there may be a million, at once."""
        value = values["value"]

        def write() -> None:
            self.register.write(0, value)
            for one in self._copies():
                one.memory[:] = one.memory[0]
                one.seen, one.unseen = {}, value

        self._set_all(write)

    def _set_all(self, write: Callable[[], None]) -> None:
        former = [(one, one.memory.copy(), (one.seen, one.unseen)) for one in self._copies()]
        write()
        written = [one.memory.copy() for one, *_ in former]

        def step() -> None:
            for (one, old, seen), new in zip(former, written, strict=True):
                one.seen, one.unseen = seen
                same = one.memory == new
                same = same if same.ndim == 1 else same.all(axis=1)
                one.memory[same] = old[same]

        self.journal.record(step)

    def touched(self) -> Iterable[int]:
        initial = self.register.initial
        return (i for i, cell in enumerate(self.register.cells) if cell != initial)

    @property
    def _seen(self) -> dict[int, int]:
        return self.register.seen

    @property
    def _unseen(self) -> int:
        return self.register.unseen

    def _forget(self) -> None:
        self.register.seen, self.register.unseen = {}, self.register.initial

    def _record(self, value: int) -> Record:
        return {"value": value}

    def _read(self, key: int) -> int:
        return self.register.read(key)

    def _copies(self) -> Iterable[Register]:
        return (self.register, *self.register.copies)


class Filters(Cells):
    """The settings of a filter: `config`, None without one; a write starts it anew. Raises
    TableError OUT_OF_RANGE. `clock`: in ns."""

    name = "filter"

    def __init__(self, journal: Journal, filter: Filter, clock: Callable[[], int]) -> None:
        super().__init__(journal, filter.size)
        self.filter, self._clock = filter, clock

    def get(self, key: int) -> Record:
        return {"config": self.filter.read(key)}

    def initial(self, key: int) -> Record:
        return {"config": None}

    def put(self, key: int, record: Record | None) -> None:
        filter, now = self.filter, self._clock()
        former, cell = filter.read(key), filter.cells[key].copy()
        filter.write(key, None if record is None else record["config"], now)
        written = filter.cells[key].copy()

        def step() -> None:
            untouched = np.array_equal(filter.cells[key], written)
            filter.write(key, former, now)
            if untouched:
                filter.cells[key] = cell

        self.journal.record(step)

    def touched(self) -> Iterable[int]:
        return map(int, np.flatnonzero(self.filter.cells[:, 0]))


class Values(Kind[Member]):
    """The members of a parser value set, or those of a single parser, which have no data; raises
    TableError."""

    name = "member"

    def __init__(
        self, journal: Journal, value_set: ParserValueSet, parser: int | None = None
    ) -> None:
        super().__init__(journal)
        self.value_set = value_set
        self.parser = parser

    def existing(self) -> Iterable[Member]:
        return self.value_set.of(self.parser)

    def get(self, key: Member) -> Record | None:
        return {} if key in self.existing() else None

    def put(self, key: Member, record: Record | None) -> None:
        others = [member for member in self.existing() if member != key]
        self.replace(others if record is None else [*others, key])

    def clear(self) -> None:
        self.replace([])

    def replace(self, members: Sequence[Sequence[Match]]) -> None:
        """Set all members."""
        value_set, parser = self.value_set, self.parser
        former = value_set.of(parser)
        value_set.replace(members, parser)
        written = value_set.of(parser)

        def step() -> None:
            if value_set.of(parser) == written:
                value_set.put(former, parser)

        self.journal.record(step)


def _take_meter_back(cells: memoryview[int], former: Sequence[int], written: Sequence[int]) -> None:
    """Give a meter its former rates, the tokens of then or, if packets took some since, those left,
    and what they have counted."""
    untouched = cells[_TOKENS].tolist() == written[_TOKENS]
    for i in (*range(6), _PERIOD):
        cells[i] = former[i]
    committed, excess = former[2], former[5] or former[4]  # the bursts
    tokens = former[_TOKENS] if untouched else (
        min(cells[6], committed), min(cells[7], excess), cells[8]
    )  # fmt: skip
    for i, word in enumerate(tokens, 6):
        cells[i] = word
    for i in range(COUNTS, len(former)):
        cells[i] += former[i] - written[i]
