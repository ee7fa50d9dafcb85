"""Counters, meters, registers and filters: arrays, whose entries all exist from the start."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.cell_fields import (
    ADJUSTMENT,
    BYTES,
    COUNTS,
    PACKETS,
    CellFields,
    adjustment_attribute,
    filter_config,
    filter_values,
    meter_config,
    meter_values,
    seen,
    shown_counts,
)
from gradplane.switch.bfruntime.tables.control_table import (
    Attribute,
    ControlTable,
    Flags,
    RowTable,
    Scope,
)
from gradplane.switch.bfruntime.tables.scoped import show_scope, wanted_scope
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.meters import Meter
from gradplane.switch.runtime.pipe_scopes import Groups


class ArrayTable(RowTable):
    """A table whose key is an index, which is the entry's handle, too. Adding an entry writes it,
    as modifying it does."""

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

    def handle(self, scope: Scope, key: Key) -> int:
        return self.row(scope, key)

    def key_of(self, scope: Scope, handle: int) -> Key:
        return self.key(self.row(scope, self.key(handle)))

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
        given = {name: data.values[of] for name, of in COUNTS.items() if of in data.values}
        self.store.counters(self.counter).write(index, **given)

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, shown_counts(self.store.counters(self.counter), row, scope))

    def operate(self, name: str) -> None:
        self.store.counters(self.counter).sync()

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.counters(self.counter).delete(index)

    def clear(self, scope: Scope) -> None:
        self.store.counters(self.counter).clear()


def sum_of_counts(found: Sequence[Data]) -> Data:
    """Return what several counters have counted together."""
    return Data(None, {n: sum(data.values[n] for data in found) for n in (PACKETS, BYTES)})


class MeterTable(ArrayTable):
    """Meters. adjustment: of the bytes that they measure."""

    def __init__(
        self,
        schema: TableSchema,
        store: Store,
        meter: Meter,
        adjustment: ByteAdjustment,
    ) -> None:
        super().__init__(schema, store)
        self.meter = meter
        self.own_attributes[ADJUSTMENT] = adjustment_attribute(self, adjustment)

    def write(self, scope: Scope, index: int, data: Data) -> None:
        config = meter_config(self.schema, data.values, self.meter.read(index))
        self.store.meters(self.meter).write(index, config=config)

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, dict(meter_values(self.schema, self.meter.read(row))))

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.meters(self.meter).delete(index)


class FilterTable(ArrayTable):
    """A filter's cells. A write sets all fields of a cell."""

    def __init__(self, schema: TableSchema, store: Store, filter: Filter, kind: str) -> None:
        super().__init__(schema, store)
        self.filter = filter
        self._kind = kind

    def write(self, scope: Scope, index: int, data: Data) -> None:
        config = filter_config(self._kind, data.values, self.filter.read(index))
        self.store.filters(self.filter).write(index, config=config)

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, filter_values(self._kind, self.filter.read(row)))

    def initialise(self, scope: Scope, index: int) -> None:
        self.store.filters(self.filter).delete(index)


class RegisterTable(ArrayTable):
    """A register; `pipes`: its cells in each pipe in which packets reach it.

    Its attribute EntryScope says which pipes a write to one of them is for; their cells are apart
    in any scope, since packets write them."""

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
        self._scopes = store.kept("register scopes")
        self.own_attributes["entry_scope"] = Attribute(
            lambda message: show_scope(self._groups(), message.entry_scope), self._set_scope
        )

    def _groups(self) -> Groups:
        known = self._scopes.get(self.schema.name)
        return (tuple(self.pipes),) if known is None else tuple(map(tuple, known))

    def _set_scope(self, message: Any) -> None:
        wanted = wanted_scope(tuple(self.pipes), message.entry_scope)
        if sorted(pipe for pipes in wanted for pipe in pipes) != sorted(self.pipes):
            own = ", ".join(map(str, self.pipes))
            raise self.invalid(f"each of the pipes {own} must be in one scope, not {wanted}")
        self.store.journal.put(self._scopes, self.schema.name, wanted)

    def _in_scope(self, scope: Scope) -> list[Register]:
        """Return the cells that a write is for: with a pipe, those of its group, if there are
        several."""
        groups = self._groups()
        if scope.all or len(groups) == 1:
            return _of(self, scope)
        asked = set(scope.pipes)
        named = {pipe for pipes in groups if not asked.isdisjoint(pipes) for pipe in pipes}
        return [self.pipes[pipe] for pipe in sorted(named)] or _of(self, scope)

    def write(self, scope: Scope, index: int, data: Data) -> None:
        registers = self._in_scope(scope)
        if not self._fields.given(data.values):
            return
        values = self._fields.changed(data.values, [one.read(index) for one in registers])
        for register, value in zip(registers, values, strict=True):
            self.store.registers(register).write(index, value=value)

    def shown(self, scope: Scope, row: int) -> Data:
        found = [seen(self.store.registers(one), row, scope) for one in _of(self, scope)]
        return Data(None, dict(self._fields.fields([cell["value"] for cell in found])))

    def operate(self, name: str) -> None:
        for register in self.pipes.values():
            self.store.registers(register).sync()

    def initialise(self, scope: Scope, index: int) -> None:
        for register in self._in_scope(scope):
            self.store.registers(register).delete(index)

    def clear(self, scope: Scope) -> None:
        for register in self._in_scope(scope):
            self.store.registers(register).clear()


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
            self.store.registers(register).write(0, value=value)

    def reset_default(self, scope: Scope) -> None:
        for register in _of(self, scope):
            self.store.registers(register).delete(0)

    def default(self, scope: Scope) -> Data | None:
        return Data(None, {"value": _of(self, scope)[0].read(0)})


def _of(table: RegisterTable | RegisterParamTable, scope: Scope) -> list[Register]:
    """Return a register's cells in the pipes of a request. Raises RpcError if it is in none."""
    found = [table.pipes[pipe] for pipe in scope.pipes if pipe in table.pipes]
    if not found:
        raise table.other_pipeline(scope.pipes[0], table.pipes)
    return found
