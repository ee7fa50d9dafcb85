"""Traces a checksum's list that a variable holds back to its source.

Only so are fields of invalid headers left out of it; p4c does the same. Values that are assigned to
a variable, whole or member by member, are followed to the call, also into branches:

    list.x = h.x                              list.x = h.x
    list.y = h.y                              list.y = h.y
    update_checksum(in true, in list, ..)  ->  update_checksum(in true, in list{h.x, h.y}, ..)
"""

from __future__ import annotations

from typing import TypeGuard

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.expression_builder import parts
from gradplane.switch.ir.types import (
    Array,
    Fields,
    Header,
    Stack,
    Union,
)
from gradplane.switch.ir.walk import bodies, nested, overlap, path, with_operands, writes

Place = tuple[ir.Var, tuple[int, ...]]


def trace_lists(block: ir.Control) -> None:
    """Rewrite the checksum calls of a control in place; done twice it changes nothing more."""
    _Known({}).follow_all(block.body)


class _Known:
    """The values of the variables assigned so far, as expressions over other storage."""

    def __init__(self, values: dict[Place, tuple[ir.LValue, ir.Expr]]) -> None:
        self._values = values  # with the place as the l-value that was assigned to

    def follow_all(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            self.follow(stmt)

    def follow(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.Assign):
            value = self._traced(stmt.value)
            self._forget(stmt.target)
            self._learn(stmt.target, value)
        elif _is_checksum(stmt):
            stmt.args[1] = self._traced(stmt.args[1])
            self._forget_written(stmt)
        else:
            for body in bodies(stmt):
                _Known({} if isinstance(stmt, ir.Loop) else self._values.copy()).follow_all(body)
            for inside in nested([stmt]):
                self._forget_written(inside)

    def _forget_written(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.Assign) or _is_checksum(stmt):
            for target in writes(stmt):
                self._forget(target)
        elif not isinstance(stmt, ir.If | ir.SwitchStmt | ir.Block | ir.Loop | ir.Leave):
            self._values.clear()

    def _learn(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(value, ir.Make) and not isinstance(value.type, Header):
            for part, field in zip(_members(target), value.fields, strict=True):
                self._learn(part, field)
            return
        place = path(target)
        if place is not None and not _reads(value, target):
            self._values[place] = target, value

    def _forget(self, changed: ir.LValue) -> None:
        for place, (target, value) in [*self._values.items()]:
            if overlap(target, changed) or _reads(value, changed):
                del self._values[place]

    def _traced(self, e: ir.Expr) -> ir.Expr:
        """Return `e`, or an equal expression over the storage from which its values came."""
        if isinstance(e, ir.Make) and not isinstance(e.type, Header):
            return with_operands(e, [*map(self._traced, e.fields)])
        place = path(e)
        if place is None or not isinstance(e, ir.LValue):
            return e
        if place in self._values:
            return self._values[place][1]
        if isinstance(e.type, Fields | Array) and not isinstance(e.type, Header | Union | Stack):
            members = _members(e)
            traced = [*map(self._traced, members)]
            same = all(a is b for a, b in zip(members, traced, strict=True))
            return e if same else ir.Make(e.type, traced)
        return e


def _members(base: ir.LValue) -> list[ir.LValue]:
    return [part for part in parts(base) if isinstance(part, ir.LValue)]


def _reads(e: ir.Expr, changed: ir.LValue) -> bool:
    """Return whether a change of that storage could change the value of `e`."""
    match e:
        case ir.Const() | ir.Zero():
            return False
        case ir.Make(fields=fields):
            return any(_reads(field, changed) for field in fields)
    return overlap(e, changed)


def _is_checksum(stmt: ir.Stmt) -> TypeGuard[ir.CallExtern]:
    return isinstance(stmt, ir.CallExtern) and stmt.name.startswith(
        ("verify_checksum", "update_checksum")
    )
