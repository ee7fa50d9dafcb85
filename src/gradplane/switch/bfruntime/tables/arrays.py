"""Counters, meters and registers: arrays, whose entries all exist from the start."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_values import CellFields
from gradplane.switch.bfruntime.tables.control_table import (
    ControlTable,
    Flags,
    Scope,
    Undo,
)
from gradplane.switch.bfruntime.tables.entry_parts import BYTES, PACKETS
from gradplane.switch.bfruntime.tables.meter_adjustments import (
    ATTRIBUTE,
    set_adjustment,
    show_adjustment,
)
from gradplane.switch.bfruntime.tables.meter_rates import meter_config, meter_values
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.meters import Meter


class ArrayTable(ControlTable):
    """A table whose key is an index. Adding an entry writes it, as modifying it does."""

    @abstractmethod
    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        """Set the fields of a cell that are given."""

    @abstractmethod
    def read(self, scope: Scope, index: int) -> Data: ...

    @abstractmethod
    def initialise(self, scope: Scope, index: int) -> Undo:
        """Set a cell to its initial value."""

    def add(self, scope: Scope, key: Key, data: Data) -> Undo:
        return self.write(scope, self._index(key), data)

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> Undo:
        return self.write(scope, self._index(key), data)

    def delete(self, scope: Scope, key: Key) -> Undo:
        return self.initialise(scope, self._index(key))

    def reset(self, scope: Scope, key: Key) -> Undo:
        return self.initialise(scope, self._index(key))

    def clear(self, scope: Scope) -> Undo:
        steps = [self.initialise(scope, i) for i in range(self.schema.size)]

        def undo() -> None:
            for step in steps:
                step()

        return undo

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        return key, self.read(scope, self._index(key))

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        name = self.schema.keys[0].name
        for i in range(self.schema.size):
            yield {name: (i,)}, self.read(scope, i)

    def usage(self, scope: Scope) -> int:
        return self.schema.size

    def _index(self, key: Key) -> int:
        field = self.schema.keys[0]
        index = self.number(key, field.name)
        if index >= self.schema.size:
            raise self.invalid(f"{field.name} {index} is not within 0 to {self.schema.size - 1}")
        return index


class CounterTable(ArrayTable):
    def __init__(self, schema: TableSchema, counter: Counter) -> None:
        super().__init__(schema)
        self.counter = counter

    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        old = self.counter.read(index)
        packets = data.values.get(PACKETS, old[0])
        self.counter.write(index, packets, data.values.get(BYTES, old[1]))
        return lambda: self.counter.write(index, *old)

    def read(self, scope: Scope, index: int) -> Data:
        packets, nbytes = self.counter.read(index)
        return Data(None, {PACKETS: packets, BYTES: nbytes})

    def initialise(self, scope: Scope, index: int) -> Undo:
        return self.write(scope, index, Data(None, {PACKETS: 0, BYTES: 0}))

    def clear(self, scope: Scope) -> Undo:
        counter = self.counter
        packets, nbytes = counter.packets.copy(), counter.bytes.copy()
        counter.clear()

        def undo() -> None:
            counter.packets[:], counter.bytes[:] = packets, nbytes

        return undo


def sum_of_counts(found: Sequence[Data]) -> Data:
    """Return what several counters have counted together."""
    return Data(None, {n: sum(data.values[n] for data in found) for n in (PACKETS, BYTES)})


class MeterTable(ArrayTable):
    """Meters; `clock`, in ns, starts their buckets. adjustment: of the bytes that they measure."""

    def __init__(
        self, schema: TableSchema, meter: Meter, clock: Any, adjustment: ByteAdjustment
    ) -> None:
        super().__init__(schema)
        self.meter = meter
        self._adjustment = adjustment
        self._clock = clock

    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        cell = self.meter.cell(index)
        old = cell.cells.tolist()
        cell.configure(meter_config(self.schema, data.values, cell.config), self._clock())
        return lambda: cell.restore(old)

    def read(self, scope: Scope, index: int) -> Data:
        return Data(None, dict(meter_values(self.schema, self.meter.read(index))))

    def initialise(self, scope: Scope, index: int) -> Undo:
        cell = self.meter.cell(index)
        old = cell.cells.tolist()
        cell.configure(None, self._clock())
        return lambda: cell.restore(old)

    def attribute(self, name: str, message: Any) -> None:
        if name != ATTRIBUTE:
            super().attribute(name, message)
        show_adjustment(self._adjustment, message)

    def set_attribute(self, name: str, message: Any) -> Undo:
        if name != ATTRIBUTE:
            return super().set_attribute(name, message)
        try:
            return set_adjustment(self._adjustment, message)
        except ValueError as error:
            raise self.invalid(str(error)) from error


class RegisterTable(ArrayTable):
    """A register; `pipes`: its cells in each pipe in which packets reach it."""

    def __init__(
        self, schema: TableSchema, register: ir.ExternInstance, pipes: Mapping[int, Register]
    ) -> None:
        super().__init__(schema)
        self.pipes = pipes
        self._fields = CellFields(schema, register)

    def write(self, scope: Scope, index: int, data: Data) -> Undo:
        former = [(cells, cells.read(index)) for cells in _of(self, scope)]
        values = self._fields.changed(data.values, [old for _, old in former])
        for (register, _), value in zip(former, values, strict=True):
            register.write(index, value)

        def undo() -> None:
            for register, old in former:
                register.write(index, old)

        return undo

    def read(self, scope: Scope, index: int) -> Data:
        cells = [cells.read(index) for cells in _of(self, scope)]
        return Data(None, dict(self._fields.fields(cells)))

    def initialise(self, scope: Scope, index: int) -> Undo:
        former = [(cells, cells.read(index)) for cells in _of(self, scope)]
        for register, _ in former:
            register.write(index, register.initial)

        def undo() -> None:
            for register, old in former:
                register.write(index, old)

        return undo

    def clear(self, scope: Scope) -> Undo:
        registers = _of(self, scope)
        former = [(one, one.memory.copy()) for own in registers for one in (own, *own.copies)]
        for register in registers:
            register.clear()

        def undo() -> None:
            for register, old in former:
                register.memory[...] = old

        return undo


class RegisterParamTable(ControlTable):
    """A register's parameter: a number that register actions read, as the default entry."""

    def __init__(self, schema: TableSchema, pipes: Mapping[int, Register]) -> None:
        super().__init__(schema)
        self.pipes = pipes

    def set_default(self, scope: Scope, data: Data) -> Undo:
        former = [(cells, cells.read(0)) for cells in _of(self, scope)]
        for register, _ in former:
            value = data.values["value"]
            if register.type.signed and value >> (register.width - 1):
                value -= 1 << register.width
            register.write(0, value)

        def undo() -> None:
            for register, old in former:
                register.write(0, old)

        return undo

    def reset_default(self, scope: Scope) -> Undo:
        return self.set_default(scope, Data(None, {"value": _of(self, scope)[0].initial}))

    def default(self, scope: Scope) -> Data | None:
        return Data(None, {"value": _of(self, scope)[0].read(0)})


def _of(table: RegisterTable | RegisterParamTable, scope: Scope) -> list[Register]:
    """Return a register's cells in the pipes of a request. Raises RpcError if it is in none."""
    found = [table.pipes[pipe] for pipe in scope.pipes if pipe in table.pipes]
    if not found:
        raise table.other_pipeline(scope.pipes[0], table.pipes)
    return found
