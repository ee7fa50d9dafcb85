"""Rules for actions and conditions that the chip has however much room is left.

All operations of an action happen at once, each by the ALU of one container, with two operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.fit.chip_resources import IMMEDIATE_BITS
from gradplane.fit.header_bytes import neighbours
from gradplane.fit.logical_tables import GATEWAY, LogicalTable, TableAction
from gradplane.fit.overruns import Overrun
from gradplane.fit.places import Place
from gradplane.fit.table_rules import broken_by_table
from gradplane.fit.values import Operation

_MOST_BITS = 64
"""The widest sum: two containers with a carry between them."""


def broken_rules(tables: Sequence[LogicalTable]) -> Iterator[Overrun]:
    """Yield the actions and conditions that the chip cannot do."""
    seen: set[tuple[object, str]] = set()
    for table in tables:
        found = _condition(table) if table.kind == GATEWAY else _actions(table)
        for overrun in found:
            if (overrun.span, overrun.what) not in seen:
                seen.add((overrun.span, overrun.what))
                yield overrun


def _condition(table: LogicalTable) -> Iterator[Overrun]:
    if table.problem:
        way_out = "compute it before in an action of a table (a difference, an AND), and test the"
        way_out += " result against a constant; or ask a table with constant entries"
        yield Overrun("gateways", table.problem, table.span, way_out)


def _actions(table: LogicalTable) -> Iterator[Overrun]:
    yield from broken_by_table(table)
    for action in table.actions:
        yield from _hashes(action)
        for n, operation in enumerate(action.operations):
            yield from _operation(operation)
            yield from _neighbours(operation)
            in_action = table.table is not None or operation.called is not None
            if in_action and not operation.value.impossible:
                yield from _order(action, action.operations[:n], operation)


def _hashes(action: TableAction) -> Iterator[Overrun]:
    """Yield an overrun if hashes and random numbers have more bits than come to one action."""
    uses = {
        id(use): use
        for operation in action.operations
        for use in operation.value.uses
        if use.instance.kind in ("hash", "random")
        and not any(other.hashed and other is not use for other in operation.value.uses)
    }
    bits = sum(use.result_bits for use in uses.values())
    if bits > IMMEDIATE_BITS:
        what = f"{bits} bits of hashes and random numbers come to one action; {IMMEDIATE_BITS} can"
        way_out = "compute them in actions of several tables (statements side by side are one)"
        yield Overrun("hash_units", what, action.operations[0].span, way_out)


def _operation(operation: Operation) -> Iterator[Overrun]:
    value = operation.value
    if value.impossible:
        what, way_out = value.impossible.what, value.impossible.way_out
        yield Overrun("instructions", what, operation.span, way_out)
    elif value.steps > 1 and not _by_field(operation):
        what = f"{value.steps} operations after each other for one field; an action makes one"
        way_out = "use an action for each step (the compiler puts what one statement sets into the"
        way_out += " next ones, but not across actions), with metadata between them"
        yield Overrun("instructions", what, operation.span, way_out)
    wide = [p for p in operation.writes if p.bits > _MOST_BITS]
    if operation.carries and wide:
        what = f"{wide[0].name} is added up over {wide[0].bits} bits; two ALUs have {_MOST_BITS}"
        way_out = "keep the number in two parts, or in a register of pairs"
        yield Overrun("instructions", what, operation.span, way_out)


def _neighbours(operation: Operation) -> Iterator[Overrun]:
    """Yield an overrun if an ALU computes a field of a header that shares a byte with others: its
    result is a whole container. Setting a field and masks with constants leave the others."""
    value = operation.value
    if value.impossible or not value.steps or not (value.carries or len(set(value.places)) > 1):
        return
    for place in operation.writes:
        others = neighbours(place)
        if others:
            what = f"{place.name} is computed, which changes the whole byte; {', '.join(others)}"
            what += f" {'is' if len(others) == 1 else 'are'} in it, too"
            way_out = "compute it in metadata, and set the field to the result in a later action;"
            way_out += " or give the field bytes of its own (with @padding)"
            yield Overrun("instructions", what, operation.span, way_out)


def _by_field(operation: Operation) -> bool:
    """Return whether an ALU takes several operations at once: masks and shifts into a field."""
    return operation.value.steps == 2 and not operation.carries and operation.value.sources <= 3


def _order(
    action: TableAction, before: Sequence[Operation], operation: Operation
) -> Iterator[Overrun]:
    for earlier in before:
        for place in earlier.writes:
            if any(place.overlaps(p) and _after(earlier, p, operation) for p in operation.reads):
                what = f"action {action.name} reads {place.name} after writing it in one stage"
                way_out = "split the action: a second table, or statements in the control, go on"
                yield Overrun("instructions", what, operation.span, way_out)
                return


def _after(earlier: Operation, place: Place, operation: Operation) -> bool:
    """Return whether an operation reads a place after an earlier one of its run."""
    return earlier.number < operation.value.ages.get(place, operation.number)
