"""Cells that packets write, too: counters, meters, registers, filters; and parser value sets.

A step of the journal takes back what the control plane wrote, and no more. A counter loses what was
added to it and keeps what packets have counted since; a meter gets its rates back, and its tokens
unless packets have taken some; a register's cell stays as it is if a packet has set it since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gradplane.switch.control.journal import Journal
from gradplane.switch.runtime.arrays import MASK64, Counter, Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.filters import Filter, FilterConfig
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.meters import COUNTS, Meter, MeterCell, MeterConfig
from gradplane.switch.runtime.valuesets import ParserValueSet

_TOKENS, _PERIOD = slice(6, 9), 9  # words of a meter's cell


class Cells:
    """Writes the cells of a switch; reading needs no help."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    # -- counters -------------------------------------------------------------------------------

    def set_count(self, count: Count, packets: int, nbytes: int) -> None:
        """Set the direct counter of an entry, or of a table's misses."""
        more = packets - count.packets, nbytes - count.bytes
        count.packets, count.bytes = packets, nbytes

        def step() -> None:
            count.packets, count.bytes = count.packets - more[0], count.bytes - more[1]

        self._journal.record(step)

    def set_counter(self, counter: Counter, index: int, packets: int, nbytes: int) -> None:
        """Set a cell of a counter; raises TableError OUT_OF_RANGE."""
        former = counter.read(index)
        counter.write(index, packets, nbytes)
        more = (packets & MASK64) - former[0], (nbytes & MASK64) - former[1]

        def step() -> None:
            now = counter.read(index)
            counter.write(index, now[0] - more[0], now[1] - more[1])

        self._journal.record(step)

    def clear_counter(self, counter: Counter) -> None:
        """Set all cells of a counter to 0."""
        packets, nbytes = counter.packets.copy(), counter.bytes.copy()
        counter.clear()

        def step() -> None:
            counter.packets[:] += packets
            counter.bytes[:] += nbytes

        self._journal.record(step)

    # -- meters ---------------------------------------------------------------------------------

    def set_meter(
        self, cell: MeterCell, config: MeterConfig | None, now: int, clear: bool = False
    ) -> None:
        """Set a meter's rates and fill its buckets; None: every packet is green.

        clear: set its counts per colour to 0, too."""
        former = cell.cells.tolist()
        cell.configure(config, now)
        if clear:
            cell.clear_counts()
        written = cell.cells.tolist()
        self._journal.record(_take_meter_back, cell.cells, former, written)

    def clear_meter(self, meter: Meter, now: int) -> None:
        """Remove the rates of all cells of a meter."""
        for i in range(meter.size):
            self.set_meter(meter.cell(i), None, now)

    def set_adjustment(self, adjustment: ByteAdjustment, nbytes: int | None) -> None:
        """Set the bytes that are added to what a meter measures; raises ValueError."""
        former = adjustment.bytes
        adjustment.set(nbytes)
        self._journal.record(adjustment.set, former)

    # -- registers ------------------------------------------------------------------------------

    def set_register(self, register: Register, index: int, value: int) -> None:
        """Set a cell of a register, in all pipes that it is in; raises TableError."""
        former = [(one, one.cells[index]) for one in _copies(register) if index < one.size]
        register.write(index, value)

        def step() -> None:
            for one, old in former:
                if one.cells[index] == value:
                    one.cells[index] = old

        self._journal.record(step)

    def clear_register(self, register: Register) -> None:
        """Set all cells of a register to their initial value."""
        former = [(one, one.memory.copy()) for one in _copies(register)]
        register.clear()
        written = [one.memory.copy() for one, _ in former]

        def step() -> None:
            for (one, old), new in zip(former, written, strict=True):
                same = one.memory == new
                same = same if same.ndim == 1 else same.all(axis=1)
                one.memory[same] = old[same]

        self._journal.record(step)

    # -- filters --------------------------------------------------------------------------------

    def set_filter(self, filter: Filter, index: int, config: FilterConfig | None, now: int) -> None:
        """Set a filter's settings and start it anew; raises TableError OUT_OF_RANGE."""
        former, cell = filter.read(index), filter.cells[index].copy()
        filter.write(index, config, now)
        written = filter.cells[index].copy()

        def step() -> None:
            untouched = np.array_equal(filter.cells[index], written)
            filter.write(index, former, now)
            if untouched:
                filter.cells[index] = cell

        self._journal.record(step)

    # -- value sets -----------------------------------------------------------------------------

    def set_members(self, value_set: ParserValueSet, members: Sequence[Sequence[Match]]) -> None:
        """Set all members of a parser value set; raises TableError."""
        former = value_set.members
        value_set.replace(members)
        written = value_set.members

        def step() -> None:
            if value_set.members is written:
                value_set.members = former

        self._journal.record(step)


def _copies(register: Register) -> Iterable[Register]:
    return (register, *register.copies)


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
