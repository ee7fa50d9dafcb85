"""The fields of a header that a program sets before it reads them: they need no zeros before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.aliasing import independent, overlap
from gradplane.switch.ir.types import Fields, Varbit
from gradplane.switch.ir.walk import expressions, operands, same_value, with_actions
from gradplane.switch.jit.expressions import may_reject

SEARCHED = 2000  # statements, so that compiling takes linear time


def set_first(header: ir.LValue, following: Iterable[ir.Stmt]) -> set[int]:
    """Return the fields of a header, by position, that the statements which follow each other set
    before one of them can read the header or leave the body."""
    assert isinstance(header.type, Fields), header.type
    found: set[int] = set()
    if not independent(header):
        return found
    for stmt in islice(following, SEARCHED):
        if len(found) == len(header.type.fields):
            break
        if isinstance(stmt, ir.Assign) and _is_field(stmt.target, header):
            if _uses(stmt.value, header):
                break
            assert isinstance(stmt.target, ir.FieldOf), stmt.target
            if not isinstance(stmt.target.type, Varbit):  # its length is the header's at once
                found.add(stmt.target.index)
        elif not _passes_by(stmt, header):
            break
    return found


def _is_field(target: ir.LValue, header: ir.LValue) -> bool:
    return isinstance(target, ir.FieldOf) and same_value(target.base, header)


def _passes_by(stmt: ir.Stmt, header: ir.LValue) -> bool:
    """Return whether a statement has no effect on a header, and always goes on to the next one."""
    return all(
        isinstance(inside, _SEEN_THROUGH) and not any(_uses(e, header) for e in expressions(inside))
        for inside in with_actions([stmt])
    )


_SEEN_THROUGH = ir.Assign | ir.If | ir.SetValid | ir.CallExtern | ir.ApplyTable
"""Statements that never leave the body; others that do not, either, rarely come between."""


def _uses(e: ir.Expr, header: ir.LValue) -> bool:
    """Return whether an expression can read or change a header, or end parsing."""
    if isinstance(e, ir.FieldOf | ir.Var):
        return overlap(e, header) or may_reject(e)
    return isinstance(e, ir.NextOf | ir.LastOf) or any(_uses(x, header) for x in operands(e))
