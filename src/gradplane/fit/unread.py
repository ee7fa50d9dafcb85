"""Operations whose results nothing reads: the chip's compiler leaves them out."""

from __future__ import annotations

from collections.abc import Collection

from gradplane.fit.logical_tables import GATEWAY, MATCH, LogicalTable
from gradplane.fit.places import Place
from gradplane.fit.statement_places import read_by
from gradplane.fit.values import Operation, accesses
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import statements

_Storage = tuple[object, tuple[int, ...]]


def without_unread(
    tables: list[LogicalTable], control: ir.Control, deparser: ir.Control | None
) -> list[LogicalTable]:
    """Return tables without the operations that set metadata which neither the control nor the
    deparser reads, and without tables that then do nothing."""
    own = _metadata(control)
    deparsed = statements(deparser) if deparser is not None else ()
    emitted = {p.storage for stmt in deparsed for p in read_by(stmt)}
    before = -1
    count = sum(len(t.operations) for t in tables)
    while count != before:
        before = count
        read = emitted | {p.storage for t in tables for p in (*t.key, *t.reads)}
        for table in tables:
            for action in table.actions:
                action.operations = [o for o in action.operations if _needed(o, read, own)]
        count = sum(len(t.operations) for t in tables)
    return [t for t in tables if t.kind in (MATCH, GATEWAY) or t.operations or t.table is not None]


def _metadata(control: ir.Control) -> set[str]:
    """Return the types of what only the program's own controls see: not the chip, not headers."""
    given = [p.var.type for p in control.params[1:2]]
    return {str(t) for t in given}


def _needed(operation: Operation, read: set[_Storage], own: Collection[str]) -> bool:
    if accesses(operation.value) or not operation.writes:
        return True
    return any(not _private(place, own) or place.storage in read for place in operation.writes)


def _private(place: Place, own: Collection[str]) -> bool:
    return not place.path or str(place.var.type) in own
