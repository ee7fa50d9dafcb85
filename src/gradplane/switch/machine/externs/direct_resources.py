"""Direct counters and meters on each lookup of their table."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from gradplane.switch.interp.interpreter_values import Env
from gradplane.switch.interp.statements import Observer, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.meters import count as write_count
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.statements import Statements as NativeStatements
from gradplane.switch.jit.table_apply import Observe, of_entry
from gradplane.switch.jit.table_layout import Shape
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_table import MatchTable

Step = Callable[[MatchTable, ir.ExternInstance, Statements], Observer]


class DirectResources(NamedTuple):
    """The actions on a table's direct counter and meter on each lookup, in both engines.

    on_call: only a call in the hit's action counts and meters; if not, every hit does."""

    counter: Step
    meter: Step
    compile: Observe
    on_call: bool

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        """Count and meter a lookup, and note the time of the last hit, as far as the table asks
        for it; None if it does not."""
        steps: list[Observer] = []
        if table.table.counter is not None:
            steps.append(self.counter(table, table.table.counter, statements))
        if table.table.meter is not None:
            steps.append(self.meter(table, table.table.meter, statements))
        if table.table.register is not None:
            steps.append(_keeping("register", table, table.table.register))
        if table.table.filter is not None:
            steps.append(_keeping("filter", table, table.table.filter))
        if table.table.support_timeout and not table.table.timed_by_calls:
            steps.append(_timing(statements))
        if not steps:
            return None

        def observe(env: Env, entry: Entry | None) -> None:
            for step in steps:
                step(env, entry)

        return observe


def _keeping(kind: str, table: MatchTable, instance: ir.ExternInstance) -> Observer:
    """Keep the cells that a lookup found, for the action to use. kind: an attribute of Entry."""
    name, default, of_entry = instance.name, f"default_{kind}", attrgetter(kind)

    def keep(env: Env, entry: Entry | None) -> None:
        env[0].direct[name] = getattr(table, default) if entry is None else of_entry(entry)

    return keep


def _timing(statements: Statements) -> Observer:
    clock = statements.state.clock

    def touch(env: Env, entry: Entry | None) -> None:
        if entry is not None:
            entry.last_hit_ns = clock()

    return touch


# -- without a call -----------------------------------------------------------------------------


def _counting(table: MatchTable, instance: ir.ExternInstance, statements: Statements) -> Observer:
    def count(env: Env, entry: Entry | None) -> None:
        (table.default_counter if entry is None else entry.counter).add(env[0].length)

    return count


def _metering(table: MatchTable, instance: ir.ExternInstance, statements: Statements) -> Observer:
    by_packets, clock, name = (
        instance.word("unit") == "packets",
        statements.state.clock,
        instance.name,
    )

    def meter(env: Env, entry: Entry | None) -> None:
        cell = table.default_meter if entry is None else entry.meter
        env[0].direct[name] = cell.execute(clock(), env[0].length, by_packets)

    return meter


def _count_and_meter(table: ir.Table, shape: Shape, code: NativeStatements, entry: Operand) -> None:
    f, part = code.f, shape.entry
    size = f.binary("lshr", "i64", code.noted("bits"), 3)
    if part.counter is not None:
        write_count(f, f.fixed("ptr", f.add(entry, part.counter), 8), size)
    if part.meter is not None and table.meter is not None:
        cells = f.fixed("ptr", f.add(entry, part.meter), 8)
        by_packets = table.meter.word("unit") == "packets"
        colour = execute_meter(code.unit, f, cells, size, by_packets)
        f.store("i32", colour, code.found(table.meter), 4)


AUTOMATIC = DirectResources(_counting, _metering, _count_and_meter, on_call=False)
"""Each lookup counts, and executes the meter, whose colour is kept for the program to read."""


# -- by calls of the action ---------------------------------------------------------------------


def _counter_found(
    table: MatchTable, instance: ir.ExternInstance, statements: Statements
) -> Observer:
    return _keeping("counter", table, instance)


def _meter_found(
    table: MatchTable, instance: ir.ExternInstance, statements: Statements
) -> Observer:
    return _keeping("meter", table, instance)


def _keep_found(table: ir.Table, shape: Shape, code: NativeStatements, entry: Operand) -> None:
    f, part = code.f, shape.entry
    places = (part.counter, part.meter, part.register, part.filter)
    instances = (table.counter, table.meter, table.register, table.filter)
    for instance, offset in zip(instances, places, strict=True):
        if instance is not None and offset is not None:
            cells = of_entry(f, shape, "ptr", f.add(entry, offset), 8)
            f.store("ptr", cells, code.found(instance), 8)


ON_CALL = DirectResources(_counter_found, _meter_found, _keep_found, on_call=True)
"""A lookup keeps the cells it found, for the action to count and execute."""
