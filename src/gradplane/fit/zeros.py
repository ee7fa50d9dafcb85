"""Statements that set metadata to zero where it is zero anyway: the chip's compiler drops them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.fit.places import Place, leaves
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import statements


def needless_zeros(control: ir.Control, parser: ir.Parser) -> set[int]:
    """Return the identities of a control's statements that set variables or metadata to zero before
    anything else is set to them, in the parser or on the way."""
    own = control.params[1].var
    written = {_name(place) for stmt in statements(parser) for place in _written(stmt)}
    found = set()
    for stmt in statements(control):
        places = list(_written(stmt))
        names = {_name(place) for place in places}
        private = all(not place.path or place.var is own for place in places)
        if _sets_zero(stmt) and private and names.isdisjoint(written):
            found.add(id(stmt))
        else:
            written |= names
    return found


def _sets_zero(stmt: ir.Stmt) -> bool:
    if not isinstance(stmt, ir.Assign):
        return False
    return isinstance(stmt.value, ir.Zero) or (
        isinstance(stmt.value, ir.Const) and not stmt.value.value
    )


def _written(stmt: ir.Stmt) -> Iterator[Place]:
    match stmt:
        case ir.Assign(target=target) | ir.Extract(target=target):
            yield from leaves(target)
        case ir.CallExtern(args=args, directions=directions, result=result):
            outs: Iterable[ir.Expr] = (
                a for a, d in zip(args, directions, strict=True) if d != "in"
            )
            for out in (*outs, *([] if result is None else [result])):
                yield from leaves(out)


def _name(place: Place) -> tuple[object, tuple[int, ...]]:
    """Return a field's name that is the same in parser and control: by its struct's type."""
    return (str(place.var.type) if place.path else place.var), place.path
