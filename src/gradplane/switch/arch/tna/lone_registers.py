"""Direct registers that no table owns: of one cell, since the chip's compiler makes a table without
keys of the statement that accesses one.

    DirectRegister<bit<32>>() seen;   ->   Register<bit<32>, bit<32>>(1) seen;
    x = count.execute();              ->   ... seen.read(0) ... seen.write(0, x)
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.source import Diagnostic

_INDEX = Bits(32)
_ROLES = ("size", "initial")


def lone_registers(program: ir.Program) -> Iterable[Diagnostic]:
    """Give the direct registers that are used without a table a cell of their own, in place."""
    alone = _without_table(program)
    for instance in alone:
        instance.type, instance.kind = "Register", "register"
        instance.type_args = [*instance.type_args, _INDEX]
        instance.declared_type_args = [*instance.declared_type_args, _INDEX]
        instance.args, instance.roles = [1, *instance.args], _ROLES
    for call in _calls(stmt for _, block in blocks(program.package) for stmt in statements(block)):
        if call.instance in alone and call.name != "clear":
            call.args.insert(0, build.number(_INDEX, 0))
            call.directions.insert(0, "in")
    return []


def _without_table(program: ir.Program) -> set[ir.ExternInstance]:
    """Return the direct registers that no table has, and no action of a table accesses."""
    owned = {table.register for table in program.tables}
    for table in program.tables:
        for choice in table.actions:
            owned |= {call.instance for call in _calls(nested(choice.action.body))}
    return {e for e in program.externs if e.kind == "direct_register" and e not in owned}


def _calls(stmts: Iterable[ir.Stmt]) -> Iterable[ir.CallExtern]:
    return (stmt for stmt in stmts if isinstance(stmt, ir.CallExtern))
