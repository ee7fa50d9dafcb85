"""Counters, meters, registers and filters: arrays, whose entries all exist from the start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradplane._p4runtime import p4i
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.schema import (
    REGISTER_DATA,
    DataField,
    TableSchema,
    annotations_of,
    bits,
    field_type,
    index,
)
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
    KindTable,
    Scope,
)
from gradplane.switch.bfruntime.tables.scoped import show_scope, wanted_scope
from gradplane.switch.control.cells import Counters, Filters, Meters
from gradplane.switch.control.kind import Record
from gradplane.switch.control.names import TableId, table_id
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, bit_width
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.p4runtime.p4info import control_plane_types
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment
from gradplane.switch.runtime.pipe_scopes import Groups


class ArrayTable(KindTable):
    """A table whose key is an index, which is the entry's handle, too. All entries exist: adding
    one writes it, as modifying it does; deleting or resetting it sets its initial value."""

    first_handle = 0

    def add(self, scope: Scope, key: Key, data: Data) -> None:
        self.modify(scope, key, data, Flags())

    def reset(self, scope: Scope, key: Key) -> None:
        self.delete(scope, key)

    def clear(self, scope: Scope) -> None:
        self.kind.clear()

    def rows(self, scope: Scope) -> range:
        return range(self.schema.size)

    def row(self, scope: Scope, key: Key) -> int:
        index = self.number(key)
        if index >= self.schema.size:
            name = self.schema.keys[0].name
            raise self.invalid(f"{name} {index} is not within 0 to {self.schema.size - 1}")
        return index


class CounterTable(ArrayTable):
    kind: Counters

    def record(self, place: int, data: Data) -> Record:
        return {name: data.values[of] for name, of in COUNTS.items() if of in data.values}

    def shown(self, scope: Scope, row: int) -> Data:
        return Data(None, shown_counts(self.kind, row, scope))

    def operate(self, name: str) -> None:
        self.kind.sync()


def sum_of_counts(found: Sequence[Data]) -> Data:
    """Return what several counters have counted together."""
    return Data(None, {n: sum(data.values[n] for data in found) for n in (PACKETS, BYTES)})


class MeterTable(ArrayTable):
    """Meters. adjustment: of the bytes that they measure."""

    def __init__(
        self, schema: TableSchema, store: Store, kind: Meters, adjustment: ByteAdjustment
    ) -> None:
        super().__init__(schema, store, kind)
        self.own_attributes[ADJUSTMENT] = adjustment_attribute(self, adjustment)

    def record(self, place: int, data: Data) -> Record:
        former = self.kind.read(place)["config"]
        return {"config": meter_config(self.schema, data.values, former)}

    def values(self, place: int, record: Record) -> Data:
        return Data(None, dict(meter_values(self.schema, record["config"])))


class FilterTable(ArrayTable):
    """A filter's cells. A write sets all fields of a cell. word: the kind of filter."""

    def __init__(self, schema: TableSchema, store: Store, kind: Filters, word: str) -> None:
        super().__init__(schema, store, kind)
        self._word = word

    def record(self, place: int, data: Data) -> Record:
        former = self.kind.read(place)["config"]
        return {"config": filter_config(self._word, data.values, former)}

    def values(self, place: int, record: Record) -> Data:
        return Data(None, filter_values(self._word, record["config"]))


# -- registers ------------------------------------------------------------------------------------

PARAMETER = "RegisterParam"


def register_table(
    register: p4i.Register, instance: ir.ExternInstance, name: str, own_name: str
) -> TableSchema:
    """Return the table of a register. own_name: the register's, for its fields."""
    return TableSchema(
        name, table_id(TableId.REGISTER, register.preamble.id), "Register", register.size,
        (index("REGISTER_INDEX"),),
        tuple(cells(instance, own_name, 1)), operations=("Sync",), unlisted=("EntryScope",),
    )  # fmt: skip


def parameter_table(
    parameter: p4i.Register, instance: ir.ExternInstance, name: str, user: int | None
) -> TableSchema:
    """Return the table of a register's parameter. user: the id of the register's table."""
    width = bit_width(instance.type_args[0]) or 0
    value = DataField(1, "value", bits(width, instance.number("initial", 0)), True)
    return TableSchema(
        name, table_id(TableId.REGISTER_PARAM, parameter.preamble.id), PARAMETER, 1, (), (value,),
        depends_on=() if user is None else (user,), annotations=annotations_of(parameter.preamble),
    )  # fmt: skip


def cells(register: ir.ExternInstance, own_name: str, first: int) -> Iterator[DataField]:
    """Yield the fields of a register's cell; first: the id of the first one."""
    cell = register.cell or control_plane_types(register)[0]
    parts = [(f.name, f.type) for f in cell.fields] if isinstance(cell, Fields) else [("f1", cell)]
    for at, (part, t) in enumerate(parts):
        yield DataField(
            first + at, f"{own_name}.{part}", field_type(t), mandatory=True,
            annotations=(REGISTER_DATA,),
        )  # fmt: skip


def users_of_parameters(program: ir.Program) -> Mapping[str, str]:
    """Return, by the name of each parameter that a register action reads, the register's name."""
    found = {}
    for _, block in blocks(program.package):
        for stmt in statements(block):
            if not isinstance(stmt, ir.Block) or stmt.access is None:
                continue
            register = stmt.access.args[0]
            if not isinstance(register, ir.ExternInstance):
                continue
            for inner in nested(stmt.body):
                read = inner.instance if isinstance(inner, ir.CallExtern) else None
                if read is not None and read.type == PARAMETER:
                    found[read.name] = register.name
    return found


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
        super().__init__(schema, store, store.registers(next(iter(pipes.values()))))
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

    def modify(self, scope: Scope, key: Key, data: Data, flags: Flags) -> None:
        index, registers = self.row(scope, key), self._in_scope(scope)
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

    def delete(self, scope: Scope, key: Key) -> None:
        index = self.row(scope, key)
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
