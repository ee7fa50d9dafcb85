"""The Portable NIC Architecture (PNA specification 0.7; also with the blocks and metadata of 0.5,
which p4c's pna.p4 has: a pre control, directions, passes and loops)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane._suggestions import did_you_mean
from gradplane.switch.arch import portable
from gradplane.switch.arch.architecture import Implementation
from gradplane.switch.arch.load_checks import extern_calls, full_name
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Bool, Struct
from gradplane.switch.ir.walk import action_number, nested
from gradplane.switch.source import Diagnostic

if TYPE_CHECKING:
    from gradplane.switch.machine.weaving import Expansions

_PLACES = {
    "main_parser": "the main parser",
    "pre_control": "the pre control",
    "main_control": "the main control",
    "main_deparser": "the main deparser",
}
_NET_TO_HOST = 0
_FIRST_VPORT = 0x100  # as in path.p4
_ADDING = {"add_entry": 0, "add_entry_if": 1}
"""The functions that add an entry, and the position of the action's name."""
_TIMERS = (
    "restart_expire_timer", "set_entry_expire_time", "set_entry_expire_time_if",
    "update_expire_info",
)  # fmt: skip
_WITH_TIMERS = "a table with pna_idle_timeout = PNA_IdleTimeout_t.AUTO_DELETE or NOTIFY_CONTROL"
_SENDING = ("drop_packet", "send_to_port", "mirror_packet")
"""The externs that say where a packet goes: their bodies are in path.p4."""


def _load() -> Implementation:
    from gradplane.switch.machine.externs import table_writes
    from gradplane.switch.machine.text_externs import TextBody, made_of

    folder, controls = Path(__file__).parent, ("pre_control", "main_control")
    more = {("", n): TextBody(folder, n).extern().within("main_control") for n in _SENDING}
    more[("", "SelectByDirection")] = made_of(_by_direction)
    more |= {("", name): made_of(_port_side) for name in ("is_net_port", "is_host_port")}
    writing = {
        "add_entry": table_writes.ADD, "add_entry_if": table_writes.ADD_IF,
        "allocate_flow_id": table_writes.FLOW_ID, **table_writes.TIMERS,
    }  # fmt: skip
    more |= {("", name): extern.within(*controls) for name, extern in writing.items()}
    packs = ("main_control", "main_deparser")
    return portable.implementation(
        folder,
        _PLACES,
        more,
        packs,
        [_timed_by_calls],
        [_pre_control, _tables, _calls, _lengths],
        _without_pre_control,
    )


ARCHITECTURE = portable.record(
    "pna", "PNA_NIC", ("main_parser", "main_control", "main_deparser"), _load
)


def _callers(
    program: ir.Program, names: Collection[str]
) -> Iterator[tuple[ir.Table, ir.CallExtern]]:
    """Yield the calls of functions in tables' actions, each with the table."""
    for table in program.tables:
        for choice in table.actions:
            for stmt in nested(choice.action.body):
                if isinstance(stmt, ir.CallExtern) and not stmt.instance and stmt.name in names:
                    yield table, stmt


def _timed_by_calls(program: ir.Program) -> Iterable[Diagnostic]:
    """Note the tables whose actions restart their entries' timers: then a hit alone does not."""
    for table, _ in _callers(program, _TIMERS):
        table.timed_by_calls = True
    return ()


def _by_direction(call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statement of SelectByDirection(direction, to host, to net), or of version 0.7's,
    whose first argument says whether the packet is from the network."""
    direction, to_host, to_net = call.args
    if call.result is None:
        return []
    if isinstance(direction, ir.Const) and isinstance(direction.value, str):
        return [ir.Assign(call.result, to_host if direction.value == "NET_TO_HOST" else to_net)]
    first = direction
    if not isinstance(first.type, Bool):
        first = ir.Binary(BOOL, "==", direction, ir.Const(direction.type, _NET_TO_HOST))
    return [ir.Assign(call.result, ir.Mux(to_host.type, first, to_host, to_net))]


def _port_side(call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statement of is_net_port(port) or is_host_port(port)."""
    (port,) = call.args
    side = "<" if call.name == "is_net_port" else ">="
    is_there = ir.Binary(BOOL, side, port, ir.Const(port.type, _FIRST_VPORT))
    return [] if call.result is None else [ir.Assign(call.result, is_there)]


def _without_pre_control(program: ir.Program) -> Expansions:
    """Return what leaves the pre control out of the path of a program of version 0.7."""
    if "pre_control" in program.package.args:
        return {}
    gone = {"run": "pre_control", "enter": "pre control"}
    return {name: partial(_without, block) for name, block in gone.items()}


def _without(block: str, call: ir.CallExtern) -> list[ir.Stmt]:
    name = call.args[0]
    return [] if isinstance(name, ir.Const) and name.value == block else [call]


def _pre_control(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse a pre control of other headers or metadata than the main parser's."""
    package = program.package
    if "pre_control" not in package.args:
        return
    pre, main = package.control("pre_control"), package.parser("main_parser")
    for own, given in zip(pre.params[:2], main.params[:2], strict=True):
        if own.var.type != given.var.type:
            what = f"the pre control's {own.name} must be a {given.var.type}, as the main parser's"
            yield Diagnostic(pre.span, f"{what}, not {own.var.type}")


def _lengths(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse meters that are given a length, as those of p4c's pna.p4 can be."""
    for _, call in extern_calls(program):
        if full_name(call) == "DirectMeter.execute" and any(a.type == Bits(32) for a in call.args):
            what = "DirectMeter.execute is given a length: this switch measures the packet's own"
            yield Diagnostic(call.span, what, hint="leave the length out")


# -- rules of tables that packets write -----------------------------------------------------------


def _tables(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse tables that packets could not add entries to."""
    for table in program.tables:
        if not table.add_on_miss:
            continue
        what = f"table {table.name} has add_on_miss = true"
        other = next((key for key in table.keys if key.match_kind != "exact"), None)
        if other is not None:
            hint = "an entry is added for the values that were looked up: match them exact"
            problem = f"{what} and the key {other.name} of kind {other.match_kind}"
            yield Diagnostic(table.span, problem, hint=hint)
        if not table.keys:
            yield Diagnostic(table.span, f"{what} and no key")
        if table.const_entries:
            yield Diagnostic(table.span, f"{what} and const entries, which nothing can be added to")
        if table.implementation is not None:
            hint = "entries of an action profile's table have members, which packets cannot make"
            problem = f"{what} and the action profile {table.implementation.name}"
            yield Diagnostic(table.span, problem, hint=hint)


def _calls(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse calls that write no table that lets them."""
    inside = {stmt for _, stmt in _callers(program, (*_ADDING, *_TIMERS))}
    for _, call in extern_calls(program):
        if not call.instance and call.name in (*_ADDING, *_TIMERS) and call not in inside:
            where = "a table with add_on_miss = true" if call.name in _ADDING else _WITH_TIMERS
            yield Diagnostic(call.span, f"{call.name} may be called in an action of {where} only")
    for table, call in _callers(program, _TIMERS):
        if not table.support_timeout:
            what = f"{call.name} is called in an action of table {table.name}, whose entries have"
            hint = "pna_idle_timeout = PNA_IdleTimeout_t.AUTO_DELETE; (or NOTIFY_CONTROL)"
            yield Diagnostic(call.span, f"{what} no timers", hint=hint)
    for table, call in _callers(program, _ADDING):
        yield from _adds(table, call)


def _adds(table: ir.Table, call: ir.CallExtern) -> Iterable[Diagnostic]:
    """Refuse a call that adds an entry which the table could not have."""
    what = f"{call.name} is called in an action of table {table.name}"
    if not table.add_on_miss:
        yield Diagnostic(call.span, f"{what}, which adds no entries", hint="add_on_miss = true;")
        return
    first = _ADDING[call.name]
    name, given = call.args[first], call.args[first + 1].type
    if not isinstance(name, ir.Const) or not isinstance(name.value, str):
        yield Diagnostic(call.span, f"{call.name}: the name of the action must be a string")
        return
    index = action_number(table, name.value)
    names = [choice.action.name.rpartition(".")[2] for choice in table.actions]
    if index is None:
        hint = did_you_mean(name.value, names) or f"its actions: {', '.join(names)}"
        problem = f"{what}, which has no action {name.value!r}"
        yield Diagnostic(call.span, problem, hint=hint)
        return
    choice = table.actions[index]
    for note in choice.annotations:
        if note.name in ("defaultonly", "groupaction"):
            problem = f"{what}, but no entry can have the action {name.value}: it is @{note.name}"
            yield Diagnostic(call.span, problem)
    adding = (s for s in nested(choice.action.body) if isinstance(s, ir.CallExtern))
    if any(not s.instance and s.name in _ADDING for s in adding):
        problem = f"{what} with action {name.value}, which adds an entry itself"
        yield Diagnostic(call.span, problem, hint="the action of a hit cannot add entries")
    wanted = [(p.name, p.type) for p in choice.action.params]
    if not isinstance(given, Struct) or [(f.name, f.type) for f in given.fields] != wanted:
        fields = "".join(f" {t} {name};" for name, t in wanted)
        problem = (
            f"{call.name}: action {name.value} does not have the parameters that {given} gives"
        )
        yield Diagnostic(call.span, problem, hint=f"it takes a struct {{{fields} }}")
