"""Writes of packets to tables: entries that a miss adds, timers of the entries that they hit.

The interpreter's packet keeps the last lookup of such a table (`LOOKUP`); machine code has it while
the table's actions are compiled (`Statements.lookup`). An entry is added by Python in both engines;
timers are words that machine code writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.interp.statements import LOOKUP
from gradplane.switch.interp.user_externs import Invoke, UserExterns
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields
from gradplane.switch.ir.walk import action_number
from gradplane.switch.jit.externs import NativeCall, Site
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.table_apply import of_entry
from gradplane.switch.jit.user_extern_calls import Buffer, Fill, call_python
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.entries import ActionData
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.written_tables import WrittenTable

ADDED, NOT_ADDED = 0, 1  # AddEntryErrorStatus_t
EXPIRE_TIMES, FLOW_IDS = "expire times", "flow ids"  # state words
_STATUS = Bits(1)


def params_of(call: ir.CallExtern, first: int) -> list[ir.Expr]:
    """Return the values for the parameters of the action that a call names at this position."""
    given = call.args[first + 1]
    assert isinstance(given.type, Fields), given.type
    return [expression_builder.field(given, i) for i in range(len(given.type.fields))]


# -- entries that a miss adds -------------------------------------------------------------------


def _add(call: Call, first: int) -> Run:
    name, profile = call.name(first), call.arg(first + 2)
    params = [call.statements.load(e) for e in params_of(call.stmt, first)]
    store, wanted = call.out(None), _always if first == 0 else call.arg(0)

    def run(env: Env) -> None:
        table, key, _ = env[0].direct[LOOKUP]
        index, args = action_number(table.table, name), tuple(int(load(env)) for load in params)
        assert index is not None, name
        added = wanted(env) and table.add(key, ActionData(index, args), profile(env))
        store(env, ADDED if added else NOT_ADDED)

    return run


def _always(env: Env) -> bool:
    return True


def _add_native(call: NativeCall, first: int) -> None:
    f, status = call.f, call.f.variable("i64", NOT_ADDED)
    wanted = "true" if first == 0 else call.code.value(call.args[0])
    with f.when(wanted):
        status.set(_added(call, first))
    call.give(status.get(), 64)


def _added(call: NativeCall, first: int) -> Operand:
    """Write the call that adds an entry; return its status (i64)."""
    code, lookup = call.code, call.code.lookup
    assert lookup is not None, call.stmt.span
    index = action_number(lookup.table, call.name(first))
    assert index is not None, call.stmt.span
    values = [*params_of(call.stmt, first), call.args[first + 2]]
    widths = [Bits(field.width) for field in lookup.shape.fields]
    keys: list[Fill] = [
        partial(code.put, t, key) for t, key in zip(widths, lookup.keys, strict=True)
    ]
    writes: list[Fill] = [*keys, *(partial(code.write, value) for value in values)]
    types = [*widths, *(value.type for value in values)]
    implement = partial(_adding, lookup.table.name, index, len(keys))
    buffer = Buffer.of(implement, types, [_STATUS], code.layouts)
    fault = call.externs.site(Site("user extern", "an entry could not be added"))
    memory = call_python(buffer, writes, call.externs.python_call(buffer), fault, code)
    ((_, offset),) = buffer.places
    return code.f.resize(code.load(_STATUS, code.f.add(memory, offset)), 1, 64)


def _adding(name: str, index: int, keys: int, externs: UserExterns | None, state: State) -> Invoke:
    table = state.tables[name]
    assert isinstance(table, WrittenTable), name

    def add(values: Sequence[Any]) -> list[Any]:
        *args, profile = values[keys:]
        added = table.add(values[:keys], ActionData(index, tuple(map(int, args))), profile)
        return [ADDED if added else NOT_ADDED]

    return add


ADD = Extern(partial(_add, first=0), partial(_add_native, first=0))
"""Add an entry of action 0, with the values 1 for its parameters and the expire time profile 2, for
the key that missed; return whether that failed."""

ADD_IF = Extern(partial(_add, first=1), partial(_add_native, first=1))
"""The same, of the arguments behind the first, if that is true."""


# -- timers -------------------------------------------------------------------------------------

Condition = int | None
"""The position of an argument that must be true; None: there is none."""


def _restart(call: Call, conditions: Sequence[int], profile: int | None, renew: Condition) -> Run:
    wanted = [call.arg(position) for position in conditions]
    given = None if profile is None else call.arg(profile)
    renewed: Load = _always if renew is None else call.arg(renew)

    def run(env: Env) -> None:
        table, _, entry = env[0].direct[LOOKUP]
        if entry is not None and all(want(env) for want in wanted):
            new = given is not None and renewed(env)
            table.restart(entry, given(env) if given is not None and new else None)

    return run


def _restart_native(
    call: NativeCall, conditions: Sequence[int], profile: int | None, renew: Condition
) -> None:
    f, lookup = call.f, call.code.lookup
    assert lookup is not None, call.stmt.span
    times = lookup.shape.entry.times
    assert times is not None, call.stmt.span
    cells = of_entry(f, lookup.shape, "ptr", f.add(lookup.entry, times), 8)
    wanted = f.compare("ne", "ptr", cells, "null")  # a miss has no timer
    for position in conditions:
        wanted = f.binary("and", "i1", wanted, call.code.value(call.args[position]))
    with f.when(wanted):
        f.store("i64", f.word("now", "i64"), cells, 8)
        if profile is not None:
            new = "true" if renew is None else call.code.value(call.args[renew])
            with f.when(new):
                time = f.item(f.word(EXPIRE_TIMES), "i64", call.number(profile))
                f.store("i64", f.load("i64", time, 8), f.add(cells, 8), 8)


def _timer(*conditions: int, profile: int | None = None, renew: Condition = None) -> Extern:
    """Return the row of what restarts the timer of the entry that was hit, and gives it the time of
    a profile (if the argument `renew` is true)."""
    given: dict[str, Any] = {"conditions": conditions, "profile": profile, "renew": renew}
    return Extern(partial(_restart, **given), partial(_restart_native, **given))


RESTART = _timer()
SET_TIME = _timer(profile=0)
SET_TIME_IF = _timer(0, profile=1)
UPDATE = _timer(0, profile=2, renew=1)


# -- flow ids -----------------------------------------------------------------------------------


def _flow_id(call: Call) -> Run:
    ids, store = call.state.flow_ids, call.out(None)

    def run(env: Env) -> None:
        store(env, int(ids[0]))
        ids[0] += 1

    return run


def _flow_id_native(call: NativeCall) -> None:
    f, cell = call.f, call.f.word(FLOW_IDS)
    number = f.load("i64", cell, 8)
    f.store("i64", f.binary("add", "i64", number, 1), cell, 8)
    call.give(number, 64)


FLOW_ID = Extern(_flow_id, _flow_id_native)
"""Return a number that no call has returned: they count from 0."""

TIMERS = {
    "restart_expire_timer": RESTART, "set_entry_expire_time": SET_TIME,
    "set_entry_expire_time_if": SET_TIME_IF, "update_expire_info": UPDATE,
}  # fmt: skip
