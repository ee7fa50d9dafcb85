"""Rules for tables that the chip has however much room is left: what their entries address, and
which keys they match on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import ceil

from gradplane.fit.chip_resources import RANGE_NIBBLES
from gradplane.fit.logical_tables import LogicalTable, TableAction
from gradplane.fit.overruns import Overrun
from gradplane.fit.shared_memory import ALU_KINDS, COUNTERS
from gradplane.fit.values import Use
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.nodes import ExternInstance
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import bit_width

_PROPERTIES = {
    "direct_counter": "counters", "direct_meter": "meters", "direct_register": "registers",
    "direct_lpf": "filters", "direct_wred": "filters",
}  # fmt: skip
"""The property of a table that names its direct extern of a kind."""


def broken_by_table(table: LogicalTable) -> Iterator[Overrun]:
    """Yield what a table asks for that the chip cannot do."""
    yield from _direct(table)
    yield from _addresses(table)
    yield from _ranges(table)
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
    for instance in dict.fromkeys(instances):
        if table.table is not None and instance not in _named(table.table):
            what = f"actions of {table.name} use {instance.name}, which the table does not name"
            way_out = f"write {_PROPERTIES[instance.kind]} = {instance.name.rpartition('.')[2]};"
            way_out += " in the table"
            yield Overrun(_resource(instance), what, table.span, way_out)
        for action in _of_entries(table):
            if instance not in _used(action, (instance.kind,)):
                what = f"action {action.name} of {table.name} does not use {instance.name}, which"
                what += " other actions of its entries use"
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
        if partly:
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
