"""Statements that set metadata to zero where it is zero anyway: the chip's compiler drops them."""

from __future__ import annotations

from gradplane.fit.statement_places import written_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import statements


def needless_zeros(control: ir.Control, parser: ir.Parser | None) -> set[int]:
    """Return the identities of a control's statements that set variables or metadata to zero before
    anything else is set to them, in the parser or on the way."""
    own = [param.var for param in control.params[1:2]]
    parsed = statements(parser) if parser is not None else ()
    written = {place.storage for stmt in parsed for place in written_by(stmt)}
    found = set()
    for stmt in statements(control):
        places = list(written_by(stmt))
        names = {place.storage for place in places}
        private = all(not place.path or place.var in own for place in places)
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
