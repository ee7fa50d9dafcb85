"""Lower `predicate`, a number with a bit for each condition of a register action's body.

rv = this.predicate(value > x)   ->   rv = value > x ? 2 : 1
if (value > x) { value = x; }    ->   predicate = value > x ? 2 : 1
rv = this.predicate()                 if (value > x) { value = x; }
                                      rv = predicate
"""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.comparisons import comparisons
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import nested, outside_helpers, rewrite

PREDICATE = "predicate"
NUMBER = Bits(16)  # four conditions make sixteen combinations


def one_hot(conditions: list[ir.Expr], position: int = 0) -> ir.Expr:
    """Return a number in which one bit is set: the one whose position the conditions are, the first
    in the lowest bit."""
    if not conditions:
        return build.number(NUMBER, 1 << position)
    *rest, last = conditions
    then, other = (one_hot(rest, 2 * position + bit) for bit in (1, 0))
    return build.mux(last, then, other)


def calls_of(stmts: Iterable[ir.Stmt], action: ir.ExternInstance) -> list[ir.CallExtern]:
    """Return the calls of an action's `predicate` without conditions."""
    return [
        stmt for stmt in nested(stmts, outside_helpers)
        if isinstance(stmt, ir.CallExtern) and stmt.instance is action and stmt.name == PREDICATE
    ]  # fmt: skip


def own_conditions(stmts: list[ir.Stmt]) -> list[ir.Expr]:
    """Return the different comparisons of a body in the order of its text, which is that of the
    ALU's comparators."""
    found: dict[tuple[str, str, str], ir.Expr] = {}
    for stmt in nested(stmts, outside_helpers):
        match stmt:
            case ir.Assign(value=e) | ir.If(cond=e):
                for key, comparison in comparisons(e):
                    found.setdefault(key, comparison)
    return list(found.values())


def assigned(stmts: list[ir.Stmt]) -> set[ir.Expr]:
    """Return the variables that a body sets as a whole."""
    targets = [s.target for s in nested(stmts, outside_helpers) if isinstance(s, ir.Assign)]
    return {target for target in targets if isinstance(target, ir.Var)}


def replace(stmts: list[ir.Stmt], calls: list[ir.CallExtern], value: ir.Expr) -> None:
    """Replace calls by assignments of a value."""

    def assigned_instead(stmt: ir.Stmt) -> list[ir.Stmt]:
        if not isinstance(stmt, ir.CallExtern) or stmt not in calls:
            return [stmt]
        assert stmt.result is not None
        return [ir.Assign(stmt.result, build.cast(stmt.result.type, value), span=stmt.span)]

    rewrite(stmts, assigned_instead)
