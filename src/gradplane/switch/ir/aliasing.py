"""Aliasing: whether two expressions can name the same storage."""

from __future__ import annotations

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header, Union
from gradplane.switch.ir.walk import variables


def path(e: ir.Expr) -> tuple[ir.Var, tuple[int, ...]] | None:
    """Return an l-value's variable and field numbers; None if an index is dynamic."""
    steps: list[int] = []
    while True:
        match e:
            case ir.Var():
                return e, tuple(reversed(steps))
            case ir.FieldOf(base=base, index=index):
                steps.append(index)
                e = base
            case ir.ElementOf(base=base, index=ir.Const(value=int() as at)):
                steps.append(at)
                e = base
            case _:
                return None


def independent(e: ir.Expr) -> bool:
    """Return whether `e` names fixed storage: always the same variable, field, element."""
    return path(e) is not None


def in_header(e: ir.Expr) -> bool:
    """Return whether an l-value is part of a header, or of a union."""
    while isinstance(e, ir.FieldOf | ir.SliceOf | ir.ElementOf):
        e = e.base
        if isinstance(e.type, Header | Union):
            return True
    return False


def header_of(e: ir.Expr) -> ir.Expr | None:
    """Return the header that a field belongs to."""
    while isinstance(e, ir.FieldOf):
        e = e.base
        if isinstance(e.type, Header):
            return e
    return None


def overlap(a: ir.Expr, b: ir.Expr) -> bool:
    """Return whether a store to one could change the other."""
    pa, pb = path(a), path(b)
    if pa is None or pb is None:
        return bool(variables(a) & variables(b))
    if pa[0] is not pb[0]:
        return False
    shared = min(len(pa[1]), len(pb[1]))
    return pa[1][:shared] == pb[1][:shared]
