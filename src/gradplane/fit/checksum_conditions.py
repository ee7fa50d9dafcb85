"""The tables that the chip's compiler makes for conditions on a deparser's checksums.

A deparser updates a checksum where a bit of the packet header vector says so. Unless that is the
validity of the checksum's own header, a table sets the bit from the condition's fields, after all
others of the control; and a table before it copies the fields that the checksum takes twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gradplane.fit.line_names import line_name
from gradplane.fit.logical_tables import ACTION, LogicalTable, TableAction
from gradplane.fit.places import VALID, Place, leaves, reads
from gradplane.fit.values import Operation, Value
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class _Update:
    """A checksum that is updated on a condition: what this reads, and the fields added up twice."""

    span: Span
    condition: list[Place]
    twice: list[Place]


def checksum_tables(
    control: ir.Control, deparser: ir.Control, gress: str, after: int, file: str
) -> list[LogicalTable]:
    """Return the tables for the conditional checksums of a deparser; after: how many tables the
    control has; file: the program's."""
    own = {str(p.var.type): p.var for p in control.params}
    updates = list(_updates(deparser.body, ()))
    copies = [u for u in updates if u.twice]
    tables = []
    for n, update in enumerate([*copies, *updates]):
        copied = n < len(copies)
        what = "copies for" if copied else "condition of"
        name = f"{what} checksum ({line_name(update.span, file)})"
        read = [_in_control(p, own) for p in (update.twice if copied else update.condition)]
        (bit,) = leaves(ir.Var(Bits(1, False), name, -1))
        value = Value(tuple(read) if copied else (), sources=1)
        action = TableAction(name, (), [Operation([bit], value, update.span)], update.span)
        tables.append(
            LogicalTable(
                ACTION, name, update.span, gress, after + n, key=() if copied else tuple(read),
                actions=[action], at_end=not copied,
            )
        )  # fmt: skip
    return tables


def _updates(body: Sequence[ir.Stmt], conditions: tuple[ir.Expr, ...]) -> Iterator[_Update]:
    sums: dict[ir.Var, ir.CallExtern] = {}
    for stmt in body:
        match stmt:
            case ir.If(cond=cond, then=then, other=other):
                for way in (then, other):
                    yield from _updates(way, (*conditions, cond))
            case ir.CallExtern(
                instance=ir.ExternInstance(kind="checksum"), result=ir.Var() as sum_
            ):
                sums[sum_] = stmt
            case ir.Assign(target=target, value=ir.Var() as sum_) if sum_ in sums:
                condition = list(dict.fromkeys(p for cond in conditions for p in reads(cond)))
                header = {(p.var, (*p.path[:-1], VALID)) for p in leaves(target)}
                if {p.field for p in condition} - header:
                    taken = Counter(p for e in sums[sum_].args for p in reads(e))
                    yield _Update(stmt.span, condition, [p for p, n in taken.items() if n > 1])


def _in_control(place: Place, own: Mapping[str, ir.Var]) -> Place:
    """Return a deparser's place as the control's: the parameter of the same type."""
    return replace(place, var=own.get(str(place.var.type), place.var))
