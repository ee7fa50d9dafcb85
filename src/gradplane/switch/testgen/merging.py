"""Branches whose bodies only assign numbers: a term for each place says what either would leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradplane.switch.interp.expressions import Store
from gradplane.switch.interp.interpreter_values import Env, Load
from gradplane.switch.interp.statements import Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Type
from gradplane.switch.ir.walk import path, within
from gradplane.switch.testgen.symbols import Symbol, Term, term

import z3  # isort: skip


class Effects:
    """The variables and fields that bodies of plain assignments write."""

    def __init__(self, statements: Statements, bodies: Sequence[Sequence[ir.Stmt]]) -> None:
        self._places: dict[Any, tuple[Type, Load, Store]] = {}
        self._bodies: list[list[tuple[Any, Load]]] = []
        for body in bodies:
            written = []
            for stmt in body:
                assert isinstance(stmt, ir.Assign), stmt
                place = path(stmt.target)
                access = (
                    stmt.target.type,
                    statements.load(stmt.target),
                    statements.store(stmt.target),
                )
                self._places[place] = access
                written.append((place, statements.load(stmt.value)))
            self._bodies.append(written)

    @classmethod
    def of(cls, statements: Statements, bodies: Sequence[Sequence[ir.Stmt]]) -> Effects | None:
        """Return the effects of bodies; None if any does more than assign numbers."""
        simple = all(is_simple(stmt) for body in bodies for stmt in body)
        return cls(statements, bodies) if simple else None

    def imagined(self, env: Env, number: int) -> dict[Any, Any]:
        """Return what body `number` would leave in all the places, and leave them as they are."""
        before = {place: load(env) for place, (_, load, _) in self._places.items()}
        for place, value in self._bodies[number]:
            self._places[place][2](env, value(env))
        after = {place: load(env) for place, (_, load, _) in self._places.items()}
        for place, (_, _, store) in self._places.items():
            store(env, before[place])
        return after

    def merge(self, env: Env, others: Sequence[tuple[Term, dict[Any, Any]]]) -> None:
        """Give the places terms for the other cases, each with its condition, too."""
        for place, (kind, load, store) in self._places.items():
            value = load(env)
            if all(written[place] is value for _, written in others):
                continue
            merged = term(kind, value)
            for condition, written in others:
                merged = z3.If(condition, term(kind, written[place]), merged)
            store(env, Symbol(value, merged))


def is_simple(stmt: ir.Stmt) -> bool:
    if not isinstance(stmt, ir.Assign) or not isinstance(stmt.target.type, Bits | Bool):
        return False
    stack = ir.ElementOf | ir.NextOf | ir.LastOf
    plain = not any(isinstance(e, stack) for e in [*within(stmt.value), *within(stmt.target)])
    return plain and path(stmt.target) is not None
