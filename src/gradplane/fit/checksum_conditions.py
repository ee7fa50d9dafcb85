"""The tables that the chip's compiler makes for conditions on a deparser's checksums.

A deparser updates a checksum if a bit of the packet header vector says so. A table at the end of
the control sets the bit from the condition's fields and the header's validity; those of several
checksums set bits of one container, so they are in stages after each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gradplane.fit.logical_tables import ACTION, LogicalTable, TableAction
from gradplane.fit.operations import Operation, Value
from gradplane.fit.places import Place, leaves, reads
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.source import Span


def checksum_tables(
    control: ir.Control, deparser: ir.Control, gress: str, after: int
) -> list[LogicalTable]:
    """Return the tables for the conditional checksums of a deparser; after: how many tables the
    control has."""
    flags = ir.Var(Bits(1, False), f"{gress} checksum flags", -1)
    vars_ = {str(p.var.type): p.var for p in control.params}
    (flag,) = leaves(flags)
    tables = []
    for name, span, read in _conditions(deparser.body, ()):
        key = tuple(dict.fromkeys(_in_control(place, vars_) for place in read))
        action = TableAction(name, (), [Operation([flag], Value(sources=1), span)], span)
        order = after + len(tables)
        tables.append(LogicalTable(ACTION, name, span, gress, order, key=key, actions=[action]))
    return tables


def _conditions(
    body: Sequence[ir.Stmt], conditions: tuple[ir.Expr, ...]
) -> Iterator[tuple[str, Span, list[Place]]]:
    """Yield a name, the place in the source and what is read, for each conditional checksum."""
    for stmt in body:
        match stmt:
            case ir.If(cond=cond, then=then, other=other):
                for way in (then, other):
                    yield from _conditions(way, (*conditions, cond))
            case ir.CallExtern(instance=ir.ExternInstance(kind="checksum"), name="update"):
                read = [place for cond in conditions for place in reads(cond)]
                if not all(place.of_header for place in read):
                    yield f"checksum (line {stmt.span.line})", stmt.span, read


def _in_control(place: Place, vars_: Mapping[str, ir.Var]) -> Place:
    """Return a deparser's place as the control's: the parameter of the same type."""
    return replace(place, var=vars_.get(str(place.var.type), place.var))
