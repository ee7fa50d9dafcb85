"""Rules for actions, conditions and tables that the chip has however much room is left.

All operations of an action happen at once, each by the ALU of one container, with two operands. The
rules for tables are about what their entries address, and which keys they match on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import ceil

from gradplane.fit.chip_resources import IMMEDIATE_BITS, RANGE_NIBBLES, Overrun
from gradplane.fit.logical_tables import GATEWAY, LogicalTable, TableAction
from gradplane.fit.places import Place, header_bytes, neighbours
from gradplane.fit.table_formats import ALU_KINDS, COUNTERS
from gradplane.fit.values import Operation, Use
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.nodes import ExternInstance
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import bit_width

_MOST_BITS = 64
"""The widest sum: two containers with a carry between them."""
_ALU_BITS = 32


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
    uneven = [
        p
        for p in (*operation.writes, *operation.reads)
        if _ALU_BITS < p.width < _MOST_BITS and header_bytes(p) is not None
    ]
    if operation.carries and uneven and not value.impossible:
        what = f"{uneven[0].name}, a field of a header of {uneven[0].width} bits, is added up; two"
        what += f" ALUs take {_MOST_BITS} bits of one"
        way_out = "set metadata to it, add this up, and set the field to the result"
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


# -- rules of tables --------------------------------------------------------------------------


_METERS = ("meter", "direct_meter")
_PROPERTIES = {
    "direct_counter": "counters", "direct_meter": "meters", "direct_register": "registers",
    "direct_lpf": "filters", "direct_wred": "filters",
}  # fmt: skip
"""The property of a table that names its direct extern of a kind."""


def broken_by_table(table: LogicalTable) -> Iterator[Overrun]:
    """Yield what a table asks for that the chip cannot do."""
    yield from _direct(table)
    yield from _addresses(table)
    yield from _colours(table)
    yield from _ranges(table)
    yield from _kinds(table)
    yield from _default(table)


def _default(table: LogicalTable) -> Iterator[Overrun]:
    """Yield an overrun if a miss would need a hash: only a hit has one."""
    if table.table is None or not table.table.keys or not table.table.actions:
        return
    action = table.actions[table.table.default.index]
    uses = [use for o in action.operations for use in o.value.uses]
    if any(use.index == "field" or use.instance.kind in ("hash", "random") for use in uses):
        what = f"{action.name}, the default action of {table.name}, takes a hash, a random number"
        what += " or an index that is a field; a miss has none of them"
        way_out = "let the default action set a field, and do the rest where this is set"
        yield Overrun("hash_units", what, action.span, way_out)


def _kinds(table: LogicalTable) -> Iterator[Overrun]:
    keys = table.table.keys if table.table is not None else ()
    if {"lpm", "ternary"} <= {key.match_kind for key in keys}:
        what = f"{table.name} has an lpm key and a ternary key"
        yield Overrun("tcam", what, table.span, "make the lpm key ternary")


def _ranges(table: LogicalTable) -> Iterator[Overrun]:
    for key in table.table.keys if table.table is not None else ():
        width = bit_width(key.expr.type) or 0
        if key.match_kind == "range" and ceil(width / 4) > RANGE_NIBBLES:
            what = f"{expression_text(key.expr)}, a range in the key of {table.name}, has {width}"
            what += f" bits; the chip matches ranges of {4 * RANGE_NIBBLES}"
            way_out = "match on the field's leading bits as ternary, and on the others as a range"
            yield Overrun("tcam", what, table.span, way_out)


def _named(table: ir.Table) -> tuple[ExternInstance | None, ...]:
    return table.counter, table.meter, table.register, table.filter


def _resource(instance: ExternInstance) -> str:
    return "stats_alus" if instance.kind in COUNTERS else "meter_alus"


def _direct(table: LogicalTable) -> Iterator[Overrun]:
    """Yield an overrun if a table's entries could have an action without its direct extern, or if
    the table does not name it."""
    instances = [u.instance for u in table.uses if u.instance.kind.startswith("direct")]
    if table.table is not None and table.table.counter is not None:
        instances.append(table.table.counter)
    for instance in dict.fromkeys(instances):
        if table.table is not None and instance not in _named(table.table):
            what = f"actions of {table.name} use {instance.name}, which the table does not name"
            way_out = f"write {_PROPERTIES[instance.kind]} = {instance.name.rpartition('.')[2]};"
            way_out += " in the table"
            yield Overrun(_resource(instance), what, table.span, way_out)
        some = any(use.instance is instance for use in table.uses)
        for action in _of_entries(table):
            if instance not in _used(action, (instance.kind,)):
                what = f"action {action.name} of {table.name} does not use {instance.name}, which"
                what += " other actions of its entries use" if some else " the table names"
                way_out = "use it in all of the table's actions, or mark this one @defaultonly"
                yield Overrun(_resource(instance), what, table.span, way_out)


def _addresses(table: LogicalTable) -> Iterator[Overrun]:
    """Yield an overrun if a table would need several addresses: it gives one to all registers and
    meters of an entry, and one to all counters."""
    actions = _of_entries(table)
    for resource, kinds in (("meter_alus", ALU_KINDS), ("stats_alus", COUNTERS)):
        used = [(action, uses) for action in actions if (uses := _used(action, kinds))]
        every = {instance for _, uses in used for instance in uses}
        indices = {
            (use.index, use.index_inputs, use.hashes)
            for _, uses in used
            for of_one in uses.values()
            for use in of_one
        }
        partly = [
            (action, every - uses.keys(), uses) for action, uses in used if every - uses.keys()
        ]
        way_out = "use each in a table of its own, with the same key"
        sorts = {"register" in instance.kind: instance.name for instance in every}
        if len(sorts) > 1 and resource == "meter_alus":
            what = f"{table.name} uses {' and '.join(sorted(sorts.values()))}, whose ALUs are of"
            what += " different kinds and take one address"
            yield Overrun(resource, what, used[-1][0].span, way_out)
        elif partly:
            action, others, uses = partly[0]
            other = min(others, key=lambda i: i.name)
            what = f"action {action.name} of {table.name} uses {next(iter(uses)).name} but not"
            what += f" {other.name}, which another action of the table uses"
            yield Overrun(resource, what, action.span, way_out)
        elif len(indices) > 1:
            names = " and ".join(sorted(instance.name for instance in every))
            what = f"the actions of {table.name} access {names} by different indices"
            way_out += "; or set a field to the index before, and access by this field"
            yield Overrun(resource, what, used[-1][0].span, way_out)


def _colours(table: LogicalTable) -> Iterator[Overrun]:
    """Yield an overrun if a meter's colour has no bus for its address: it shares that of counters,
    or, if a hash does not compute the address, that of idle timeouts."""
    counted = any(use.instance.kind in COUNTERS for use in table.uses)
    idle = table.table is not None and table.table.support_timeout
    for use in table.uses:
        if use.instance.kind in _METERS and counted and (use.index == "field" or idle):
            what = f"{table.name} counts, and meters by {use.instance.name}, whose colour takes the"
            what += " counter's address" if not idle else " counter's or the idle timeouts' address"
            way_out = "count in a table of its own, with the same key"
            yield Overrun("meter_alus", what, table.span, way_out)


def _of_entries(table: LogicalTable) -> list[TableAction]:
    """Return the actions that a table's entries can have; those of statements without a table."""
    if table.table is None:
        return table.actions
    by_entries = {
        a.action.span
        for a in table.table.actions
        if not any(n.name == "defaultonly" for n in a.annotations)
    }
    return [action for action in table.actions if action.span in by_entries]


def _used(action: TableAction, kinds: Collection[str]) -> dict[ExternInstance, list[Use]]:
    """Return the instances of some kinds that an action uses, and each use."""
    found: dict[ExternInstance, list[Use]] = {}
    for use in dict.fromkeys(u for o in action.operations for u in o.value.uses):
        if use.instance.kind in kinds and use.instance.type != "RegisterParam":
            found.setdefault(use.instance, []).append(use)
    return found
