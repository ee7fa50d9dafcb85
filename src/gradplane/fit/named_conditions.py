"""Variables that stand for a condition: the chip's compiler decides it where they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from gradplane.fit.places import reads
from gradplane.fit.statement_places import read_by, written_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import nested, statements
from gradplane.switch.source import Span

_DECIDE = ("==", "!=", "<", "<=", ">", ">=", "&&", "||")


def named_conditions(control: ir.Control, in_actions: Container[Span]) -> set[ir.Var]:
    """Return the variables of a control that one statement sets, to a condition, and that only
    conditions read. in_actions: the statements that are an action's."""
    named = {
        stmt.target: stmt
        for stmt in nested(control.body)
        if isinstance(stmt, ir.Assign) and _decides(stmt) and stmt.span not in in_actions
    }
    writes: Counter[ir.Var] = Counter()
    asked: Counter[ir.Var] = Counter()
    everywhere: Counter[ir.Var] = Counter()
    for stmt in statements(control):
        everywhere.update(place.var for place in read_by(stmt))
        writes.update(place.var for place in written_by(stmt))
        if isinstance(stmt, ir.If):
            asked.update(place.var for place in reads(stmt.cond))
    for setting in named.values():
        asked.update(place.var for place in reads(setting.value))
    return {
        var
        for var in named
        if isinstance(var, ir.Var) and writes[var] == 1 and asked[var] == everywhere[var]
    }


def _decides(stmt: ir.Assign) -> bool:
    value = stmt.value
    while isinstance(value, ir.Unary) and value.op == "!":
        value = value.operand
    return isinstance(value, ir.Binary) and value.op in _DECIDE
