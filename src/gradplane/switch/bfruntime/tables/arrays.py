"""Counters, meters, registers and filters: arrays, whose entries all exist from the start."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_fields import (
    ADJUSTMENT,
    BYTES,
    PACKETS,
    CellFields,
    adjustment_attribute,
    filter_config,
    filter_values,
    meter_config,
    meter_values,
)
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, RowTable, Scope
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.meters import Meter


class ArrayTable(RowTable):
    """A table whose key is an index. Adding an entry writes it, as modifying it does."""

    @abstractmethod
    def write(self, scope: Scope, index: int, data: Data) -> None:
        """Set the fields of a cell that are given."""

    @abstractmethod
    def initialise(self, scope: Scope, index: int) -> None:
        """Set a cell to its initial value."""

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        self.write(scope, self.row(scope, key), data)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        self.write(scope, self.row(scope, key), data)

    def delete(self, scope: Scope, key: Key) -> None:
        self.initialise(scope, self.row(scope, key))

    def reset(self, scope: Scope, key: Key) -> None:
        self.initialise(scope, self.row(scope, key))

    def clear(self, scope: Scope) -> None:
        for i in self.rows(scope):
            self.initialise(scope, i)

    def rows(self, scope: Scope) -> range:
        return range(self.schema.size)

    def row(self, scope: Scope, key: Key) -> int:
        index = self.number(key)
        if index >= self.schema.size:
            name = self.schema.keys[0].name
            raise self.invalid(f"{name} {index} is not within 0 to {self.schema.size - 1}")
        return index


class CounterTable(ArrayTable):
    def __init__(self, schema: TableSchema, store: Store, counter: Counter) -> None:
        super().__init__(schema, store)
        self.counter = counter

    def write(self, scope: Scope, index: int, data: Data) -> None:
        packets, nbytes = self.counter.read(index)
        packets, nbytes = data.values.get(PACKETS, packets), data.values.get(BYTES, nbytes)
        self.store.cells.set_counter(self.counter, index, packets, nbytes)

    def shown(self, scope: Scope, row: int) -> Data:
        packets, nbytes = self.counter.read(row)
        return Data(None, {PACKETS: packets, BYTES: nbytes})

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.cells.set_counter(self.counter, index, 0, 0)

    def clear(self, scope: Scope) -> None:
        self.store.cells.clear_counter(self.counter)


def sum_of_counts(found: Sequence[Data]) -> Data:
    """Return what several counters have counted together."""
    return Data(None, {n: sum(data.values[n] for data in found) for n in (PACKETS, BYTES)})


class MeterTable(ArrayTable):
    """Meters; `clock`, in ns, starts their buckets. adjustment: of the bytes that they measure."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        meter: Meter,
        clock: Callable[[], int],
        adjustment: ByteAdjustment,
    ) -> None:
        super().__init__(schema, store)
        self.meter = meter
        self._clock = clock
        self.own_attributes[ADJUSTMENT] = adjustment_attribute(self, adjustment)

    def write(self, scope: Scope, index: int, data: Data) -> None:
        cell = self.meter.cell(index)
        config = meter_config(self.schema, data.values, cell.config)
        self.store.cells.set_meter(cell, config, self._clock())

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, dict(meter_values(self.schema, self.meter.read(row))))

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.cells.set_meter(self.meter.cell(index), None, self._clock())


class FilterTable(ArrayTable):
    """A filter's cells; `clock`, in ns, starts them. A write sets all fields of a cell."""

    def __init__(
        self, schema: TableSchema, store: Store, filter: Filter, kind: str, clock: Callable[[], int]
    ) -> None:
        super().__init__(schema, store)
        self.filter = filter
        self._kind = kind
        self._clock = clock

    def write(self, scope: Scope, index: int, data: Data) -> None:
        config = filter_config(self._kind, data.values, self.filter.read(index))
        self.store.cells.set_filter(self.filter, index, config, self._clock())

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, filter_values(self._kind, self.filter.read(row)))

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.cells.set_filter(self.filter, index, None, self._clock())


class RegisterTable(ArrayTable):
    """A register; `pipes`: its cells in each pipe in which packets reach it."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        register: ir.ExternInstance,
        pipes: Mapping[int, Register],
    ) -> None:
        super().__init__(schema, store)
        self.pipes = pipes
        self._fields = CellFields(schema, register)

    def write(self, scope: Scope, index: int, data: Data) -> None:
        registers = _of(self, scope)
        if not self._fields.given(data.values):
            return
        values = self._fields.changed(data.values, [one.read(index) for one in registers])
        for register, value in zip(registers, values, strict=True):
            self.store.cells.set_register(register, index, value)

    def shown(self, scope: Scope, row: int) -> Data:
        cells = [register.read(row) for register in _of(self, scope)]
        return Data(None, dict(self._fields.fields(cells)))

    def initialise(self, scope: Scope, index: int) -> None:
        for register in _of(self, scope):
            self.store.cells.set_register(register, index, register.initial)

    def clear(self, scope: Scope) -> None:
        for register in _of(self, scope):
            self.store.cells.clear_register(register)


class RegisterParamTable(ControlTable):
    """A register's parameter: a number that register actions read, as the default entry."""

    def __init__(self, schema: TableSchema, store: Store, pipes: Mapping[int, Register]) -> None:
        super().__init__(schema, store)
        self.pipes = pipes

    def set_default(self, scope: Scope, data: Data) -> None:
        for register in _of(self, scope):
            value = data.values["value"]
            if register.type.signed and value >> (register.width - 1):
                value -= 1 << register.width
            self.store.cells.set_register(register, 0, value)

    def reset_default(self, scope: Scope) -> None:
        for register in _of(self, scope):
            self.store.cells.set_register(register, 0, register.initial)

    def default(self, scope: Scope) -> Data | None:
        return Data(None, {"value": _of(self, scope)[0].read(0)})


def _of(table: RegisterTable | RegisterParamTable, scope: Scope) -> list[Register]:
    """Return a register's cells in the pipes of a request. Raises RpcError if it is in none."""
    found = [table.pipes[pipe] for pipe in scope.pipes if pipe in table.pipes]
    if not found:
        raise table.other_pipeline(scope.pipes[0], table.pipes)
    return found
