"""The parts of an entry: its direct counter, meter, register and filter, as data fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_values import CellFields
from gradplane.switch.bfruntime.tables.control_table import Scope, Undo, nothing
from gradplane.switch.bfruntime.tables.filter_fields import FIELDS
from gradplane.switch.bfruntime.tables.meter_rates import meter_config, meter_values
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import MeterCell

PACKETS, BYTES = "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"


class EntryParts:
    """Reads and sets the parts of a table's entries for a client. pipes: returns the pipes that
    share the table. The methods that change something raise RpcError or TableError before they do,
    and return what changes it back."""

    def __init__(
        self, schema: TableSchema, table: MatchTable, pipes: Callable[[], Sequence[int]]
    ) -> None:
        self._schema = schema
        self._table = table
        self._pipes = pipes
        register, filter = table.table.register, table.table.filter
        self._cells = None if register is None else CellFields(schema, register)
        self._filter_fields = None if filter is None else FIELDS[filter.kind]

    def set_counter(self, counter: Count, data: Data) -> Undo:
        if not {PACKETS, BYTES} & data.values.keys():
            return nothing
        packets = data.values.get(PACKETS, counter.packets)
        return set_counter(counter, packets, data.values.get(BYTES, counter.bytes))

    def set_meter(self, meter: MeterCell, data: Data) -> Undo:
        if not any(name.startswith("$METER_SPEC") for name in data.values):
            return nothing
        old = meter.cells.tolist()
        meter.configure(meter_config(self._schema, data.values, meter.config), self._table.clock())
        return lambda: meter.restore(old)

    def set_register(self, cell: Register | None, data: Data) -> Undo:
        if cell is None or self._cells is None:
            return nothing
        pipes = self._pipes()
        former = [cell.read(pipe) for pipe in pipes]

        def put(values: list[int]) -> None:
            for pipe, value in zip(pipes, values, strict=True):
                cell.write(pipe, value)

        put(self._cells.changed(data.values, former))
        return partial(put, former)

    def set_filter(self, filter: Filter | None, data: Data) -> Undo:
        """Start a filter anew if the data give it another config."""
        if filter is None or self._filter_fields is None:
            return nothing
        old = filter.read(0)
        config = self._filter_fields.changed(old, data.values)
        if config is old:
            return nothing
        filter.write(0, config, self._table.clock())
        return lambda: filter.write(0, old, self._table.clock())

    def show(
        self,
        data: Data,
        scope: Scope,
        counter: Count,
        meter: MeterCell,
        cell: Register | None,
        filter: Filter | None,
    ) -> None:
        """Add the parts that the table has, in a request's pipes, to an entry's data."""
        if self._table.table.counter is not None:
            data.values[PACKETS], data.values[BYTES] = counter.packets, counter.bytes
        if self._table.table.meter is not None:
            data.values.update(meter_values(self._schema, meter.config))
        if cell is not None and self._cells is not None:
            pipes = [pipe for pipe in self._pipes() if pipe in scope.pipes]
            data.values.update(self._cells.fields([cell.read(pipe) for pipe in pipes]))
        if filter is not None and self._filter_fields is not None:
            data.values.update(self._filter_fields.values(filter.read(0)))


def set_counter(counter: Count, packets: int, nbytes: int) -> Undo:
    """Set a counter; return what sets it back."""
    old = counter.packets, counter.bytes
    counter.packets, counter.bytes = packets, nbytes

    def undo() -> None:
        counter.packets, counter.bytes = old

    return undo


def together(*changes: Callable[[], Undo]) -> Undo:
    """Make several changes, or none of them if one is refused; return what undoes them."""
    done: list[Undo] = []

    def undo() -> None:
        for step in reversed(done):
            step()

    try:
        for change in changes:
            done.append(change())
    except (RpcError, TableError):
        undo()
        raise
    return undo
