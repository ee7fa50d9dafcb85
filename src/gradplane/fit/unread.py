"""Operations whose results nothing reads: the chip's compiler leaves them out."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.fit.logical_tables import GATEWAY, MATCH, LogicalTable
from gradplane.fit.places import Place, reads
from gradplane.fit.values import Operation
from gradplane.fit.variable_reads import read_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import statements

_Name = tuple[object, tuple[int, ...]]


def without_unread(
    tables: list[LogicalTable], control: ir.Control, deparser: ir.Control
) -> list[LogicalTable]:
    """Return tables without the operations that set metadata which neither the control nor the
    deparser reads, and without tables that then do nothing."""
    own = _metadata(control)
    emitted = {
        _name(place) for stmt in statements(deparser) for e in read_by(stmt) for place in reads(e)
    }
    before = -1
    count = sum(len(t.operations) for t in tables)
    while count != before:
        before = count
        read = emitted | {_name(p) for t in tables for p in (*t.key, *t.reads)}
        for table in tables:
            for action in table.actions:
                action.operations = [o for o in action.operations if _needed(o, read, own)]
        count = sum(len(t.operations) for t in tables)
    return [t for t in tables if t.kind in (MATCH, GATEWAY) or t.operations or t.table is not None]


def _metadata(control: ir.Control) -> set[str]:
    """Return the types of what only the program's own controls see: not the chip, not headers."""
    given = [p.var.type for p in control.params[1:2]]
    return {str(t) for t in given}


def _needed(operation: Operation, read: set[_Name], own: Iterable[str]) -> bool:
    if operation.value.uses and any(u.instance.kind != "hash" for u in operation.value.uses):
        return True
    if not operation.writes:
        return True
    return any(not _private(place, own) or _name(place) in read for place in operation.writes)


def _private(place: Place, own: Iterable[str]) -> bool:
    return not place.path or str(place.var.type) in own


def _name(place: Place) -> _Name:
    """Return a field's name that is the same in control and deparser: by its struct's type."""
    return (str(place.var.type) if place.path else place.var), place.path
