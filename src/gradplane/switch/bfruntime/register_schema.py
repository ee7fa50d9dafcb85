"""The tables of registers and of their parameters, and the fields of a register's cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4i

from gradplane.switch.bfruntime.identifiers import FieldId, TableId, table_id
from gradplane.switch.bfruntime.schema import REGISTER_DATA, DataField, TableSchema, bits
from gradplane.switch.bfruntime.schema_fields import annotations_of, field_type, index
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, bit_width
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.p4runtime.p4info import control_plane_types

PARAMETER = "RegisterParam"


def register_table(
    register: p4i.Register, instance: ir.ExternInstance, name: str, own_name: str
) -> TableSchema:
    """Return the table of a register. own_name: the register's, for its fields."""
    return TableSchema(
        name, table_id(TableId.REGISTER, register.preamble.id), "Register", register.size,
        (index(FieldId.REGISTER_INDEX),),
        tuple(cells(instance, own_name, 1)), operations=("Sync",),
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
