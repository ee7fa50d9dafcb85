"""What tables do on each lookup, and how their selectors choose: for any architecture."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.arch.extern_call import collector
from gradplane.switch.interp.frame_layout import Env, Load
from gradplane.switch.interp.statements import Observer, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.hashes import HASHES, pack_bits
from gradplane.switch.runtime.match_table import MatchTable

Step = Callable[[MatchTable, ir.ExternInstance, Statements], Observer]


def observer(
    table: MatchTable, statements: Statements, counter: Step, meter: Step
) -> Observer | None:
    """Direct counter and meter, each with its step, and the time of the last hit."""
    steps: list[Observer] = []
    if table.table.counter is not None:
        steps.append(counter(table, table.table.counter, statements))
    if table.table.meter is not None:
        steps.append(meter(table, table.table.meter, statements))
    if table.table.support_timeout:
        steps.append(_timing(statements))
    if not steps:
        return None

    def observe(env: Env, entry: Entry | None) -> None:
        for step in steps:
            step(env, entry)

    return observe


def selection(table: ir.Table, statements: Statements) -> Load:
    """The action selector's hash over the table's selector keys, cut to its output width."""
    profile = statements.state.tables[table.name].profile
    assert profile is not None, table.name
    keys = [k.expr for k in table.keys if k.match_kind == "selector"]
    if not profile.algorithm or not keys:
        return lambda env: 0
    if profile.algorithm == "random":
        draw = statements.state.chance.draw
        return lambda env: draw()
    compute, mask = HASHES[profile.algorithm], (1 << profile.output_width) - 1
    collectors = [collector(key, statements) for key in keys]

    def select(env: Env) -> int:
        parts: list[tuple[int, int]] = []
        for collect in collectors:
            collect(env, parts)
        return compute(pack_bits(parts)) & mask

    return select


def counting(table: MatchTable, instance: ir.ExternInstance, statements: Statements) -> Observer:
    """Counts each lookup."""

    def count(env: Env, entry: Entry | None) -> None:
        (table.default_counter if entry is None else entry.counter).add(env[0].length)

    return count


def metering(table: MatchTable, instance: ir.ExternInstance, statements: Statements) -> Observer:
    """Executes the meter on each lookup, for the program to read the colour."""
    by_packets, clock, name = instance.args[0] == "packets", statements.state.clock, instance.name

    def meter(env: Env, entry: Entry | None) -> None:
        cell = table.default_meter if entry is None else entry.meter
        env[0].colours[name] = cell.execute(clock(), env[0].length, by_packets)

    return meter


def counter_found(
    table: MatchTable, instance: ir.ExternInstance, statements: Statements
) -> Observer:
    """Keeps what the action may count."""
    name = instance.name

    def keep(env: Env, entry: Entry | None) -> None:
        env[0].found[name] = table.default_counter if entry is None else entry.counter

    return keep


def meter_found(table: MatchTable, instance: ir.ExternInstance, statements: Statements) -> Observer:
    """Keeps the meter that the action may execute."""
    name = instance.name

    def keep(env: Env, entry: Entry | None) -> None:
        env[0].found[name] = table.default_meter if entry is None else entry.meter

    return keep


def _timing(statements: Statements) -> Observer:
    clock = statements.state.clock

    def touch(env: Env, entry: Entry | None) -> None:
        if entry is not None:
            entry.last_hit_ns = clock()

    return touch
