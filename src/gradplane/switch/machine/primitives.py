"""The primitives of packet paths, a row each: the closure that the interpreter runs and the machine
code. Their types are in machine.p4.

Functions whose names end in `_native` write machine code. What has neither effect on packets nor a
result (`enter`, `note`) is for traces only, and has no machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.interp.trace_events import Copied, Entered, Rejected
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import NODE
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.machine import weaving
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.interpreted_paths import PathCall
from gradplane.switch.machine.model import SwitchPacket
from gradplane.switch.machine.native_paths import NativePathCall
from gradplane.switch.machine.path_texts import path_text
from gradplane.switch.machine.weaving import Expansions, Primitive
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.port_queues import QueueTimes

_WORD = (1 << 64) - 1


# -- packets and their bytes --------------------------------------------------------------------


def _begin(call: PathCall) -> Run:
    packet, data, work = call.packet(0), call.arg(1), call.work
    slot, fresh = packet.packet, list(zip(packet.parts, packet.makers, strict=True))

    def run(env: Env) -> None:
        env[slot] = SwitchPacket(data(env)[0], env[work].events)
        for part, make in fresh:
            env[part] = make()

    return run


def _begin_native(call: NativePathCall) -> None:
    memory, c = call.code.packet(call.args[0])
    memory.context.begin(call.f, c, *call.bytes(1))


def _copy(call: PathCall) -> Run:
    target, source = call.packet(0), call.packet(1)

    def run(env: Env) -> None:
        env[target.packet], values = source.copy(env)
        for part, value in zip(target.parts, values, strict=True):
            env[part] = value

    return run


def _copy_native(call: NativePathCall) -> None:
    (memory, target), (_, source) = (call.code.packet(call.args[i]) for i in (0, 1))
    call.f.copy(target, source, memory.context.size)
    memory.forget_lookups(call.f, target)


def _length(call: PathCall) -> Run:
    slot, store = call.packet(0).packet, call.out(None)
    return lambda env: store(env, env[slot].length + env[slot].grown // 8)


def _length_native(call: NativePathCall) -> None:
    f, (memory, c) = call.f, call.code.packet(call.args[0])
    size = f.binary("lshr", "i64", memory.context.get(f, c, "bits"), 3)
    grown = f.binary("ashr", "i64", memory.context.get(f, c, "grown"), 3)
    call.give(f.binary("add", "i64", size, grown), 64)


def _size(call: PathCall) -> Run:
    data, store = call.arg(0), call.out(None)
    return lambda env: store(env, len(data(env)[0]))


def _size_native(call: NativePathCall) -> None:
    call.give(call.bytes(0)[1], 64)


def _cut(call: PathCall) -> Run:
    data, most, store = call.arg(0), call.arg(1), call.struct()

    def run(env: Env) -> None:
        left = data(env)[0][: most(env)]
        store(env, [left, len(left)])

    return run


def _cut_native(call: NativePathCall) -> None:
    address, size = call.bytes(0)
    args = (("i64", size), ("i64", call.number(1)))
    call.give_bytes(address, call.f.intrinsic("llvm.umin.i64", "i64", *args), call.home(0))


def _keep(call: PathCall) -> Run:
    data, store = call.arg(0), call.struct()
    return lambda env: store(env, data(env))


def _keep_native(call: NativePathCall) -> None:
    address, size = call.bytes(0)
    target = call.traffic.keep(call.f, size)
    call.f.copy(target, address, size)
    call.traffic.kept(call.f, size)
    call.give_bytes(target, size, "keep")


# -- the program's blocks -----------------------------------------------------------------------


def _ran(call: PathCall, first: int) -> Load:
    """Return the function that runs a block on values of a packet; it gives a parser's error."""
    compiled, name = call.compiled, call.name(0)
    block, packet = compiled.blocks[name], call.owner(first)
    passed = [compiled.slot(arg) for arg in call.stmt.args[first:]]
    slots, notes, own = block.slots, compiled.notes, packet.notes
    pairs = list(zip(slots, passed, strict=True))

    def run(env: Env) -> Any:
        env[0] = env[packet.packet]
        if notes is not None and own is not None:
            env[notes] = env[own]
        for slot, part in pairs:
            env[slot] = env[part]
        error = block.run(env)
        for slot, part in pairs:
            env[part] = env[slot]
        return error

    return run


def _run(call: PathCall) -> Run:
    ran, store, work = _ran(call, 1), call.out(None), call.work
    if isinstance(call.compiled.path.blocks[call.name(0)][0], ir.Parser):
        return lambda env: store(env, ran(env))

    def run(env: Env) -> None:
        env[work].behind_parser()
        ran(env)

    return run


def _run_native(call: NativePathCall) -> None:
    _, c = call.code.owner(call.args[1])
    result = call.code.run_block(call.name(0), c)
    call.give(result, 32)


def _deparse(call: PathCall) -> Run:
    ran, slot, store = _ran(call, 2), call.owner(2).packet, call.struct()

    def run(env: Env) -> None:
        ran(env)
        data = env[slot].output()
        store(env, [data, len(data)])

    return run


def _deparse_native(call: NativePathCall) -> None:
    f, traffic, code = call.f, call.traffic, call.code
    name, home = call.name(0), call.name(1)
    memory, c = code.owner(call.args[2])
    room = traffic.room(f, memory.context, c, traffic.emitted[name])
    if home == "again":
        code.node.set(f.call("ptr", "make_node", *(("i64", v) for v in (room, 0, 0, 0))))
        target = f.load("ptr", code.node.get(), 8)
    elif home == "send":
        target = native_memory.reserve(f, "out", room)
    else:
        target = traffic.keep(f, room)
    size = traffic.deparsed(f, traffic.deparser(name), c, target, code.failed)
    if home == "keep":
        traffic.kept(f, size)
    call.give_bytes(target, size, home)


# -- where packets go -----------------------------------------------------------------------------


def _send(call: PathCall) -> Run:
    port, data, work = call.arg(0), call.arg(1), call.work
    return lambda env: env[work].send(port(env), data(env)[0])


def _send_native(call: NativePathCall) -> None:
    address, size = call.bytes(1)
    if call.home(1) != "send":
        call.f.copy(native_memory.reserve(call.f, "out", size), address, size)
    call.traffic.send(call.f, call.number(0), size)


def _reason(text: str, drop_port: int) -> str:
    return text.replace("{drop port}", str(drop_port))


def _drop(call: PathCall) -> Run:
    reason, work = _reason(call.name(0), call.state.drop_port), call.work
    return lambda env: env[work].drop(reason)


def _drop_native(call: NativePathCall) -> None:
    text = call.name(0)
    call.traffic.drops[text] = _reason(text, call.traffic.unit.drop_port)
    call.traffic.count_drop(call.f, text)


def _again(call: PathCall) -> Run:
    kind, port, passes, data = (call.arg(i) for i in range(4))
    kept, work = [call.arg(i) for i in range(4, len(call.stmt.args))], call.work

    def run(env: Env) -> None:
        meta = [load(env) for load in kept] or None
        arrival = Arrival(port(env), data(env)[0], kind(env), meta, passes(env) + 1)
        env[work].result.again.append(arrival)

    return run


def _again_native(call: NativePathCall) -> None:
    f, traffic = call.f, call.traffic
    kind, port, passes = (call.number(i) for i in range(3))
    address, size = call.bytes(3)
    if call.home(3) == "again":
        node = call.code.node.get()
        more = f.binary("add", "i64", passes, 1)
        for name, value in (("kind", kind), ("port", port), ("passes", more)):
            f.store("i64", value, f.add(node, NODE[name]), 8)
    else:
        args = (("i64", value) for value in (size, kind, port, passes))
        node = f.call("ptr", "make_node", *args)
        f.copy(f.load("ptr", node, 8), address, size)
    for (_, offset), arg in zip(traffic.kept_metadata, call.args[4:], strict=False):
        call.code.write(arg, f.add(node, offset))
    traffic.take_node(f, node, size)


def _departure(call: PathCall, copied: bool) -> list[Load]:
    """Return what gives the arguments of egress."""
    loads: list[Load] = []
    for i, arg in enumerate(call.stmt.args[2:], 2):
        if isinstance(arg, ir.Var) and arg in call.compiled.slots:
            packet = call.packet(i)
            loads.append(packet.copy if copied else packet.take)
        else:
            loads.append(call.statements.expressions.fresh(arg) if copied else call.arg(i))
    return loads


def _leave(call: PathCall, copied: bool) -> Run:
    port, priority, work = call.arg(0), call.arg(1), call.work
    loads = _departure(call, copied)

    def run(env: Env) -> None:
        env[work].depart(port(env), priority(env), [load(env) for load in loads])

    return run


def _enqueue_native(call: NativePathCall) -> None:
    call.code.push(call.number(0), call.number(1), call.args[2:])


def _depart_native(call: NativePathCall) -> None:
    """Pass egress at once, unless clones go first or ports have queues."""
    f, traffic, end = call.f, call.traffic, call.f.label()
    waits = f.op(f"xor i1 {traffic.queue_is_empty(f)}, true")
    with f.when(f.binary("or", "i1", waits, traffic.engaged(f))):
        call.code.push(call.number(0), call.number(1), call.args[2:])
        f.go(end)
    call.code.call_egress(call.args[2:])
    f.at(end)


def _send_digests(call: PathCall) -> Run:
    slot, report = call.packet(0).packet, call.state.report

    def run(env: Env) -> None:
        for digest in env[slot].digests:
            report(digest)

    return run


def _send_digests_native(call: NativePathCall) -> None:
    call.traffic.send_digests(call.f)


# -- groups, sessions, ports ----------------------------------------------------------------------


def _members(call: PathCall) -> Run:
    group, store, work = call.arg(0), call.struct(), call.work

    def run(env: Env) -> None:
        store(env, [*env[work].take_replicas(env[work].members(group(env)))])

    return run


def _members_native(call: NativePathCall) -> None:
    f, after = call.f, call.f.label()
    call.give_fields(0, 0)
    first, count = call.traffic.members(f, call.number(0), after)
    call.give_fields(first, count)
    f.go(after)
    f.at(after)


def _has_session(call: PathCall) -> Run:
    number, store, sessions = call.arg(0), call.out(None), call.state.clone_sessions
    return lambda env: store(env, number(env) in sessions)


def _has_session_native(call: NativePathCall) -> None:
    call.give(call.traffic.session_exists(call.f, call.number(0)), 1)


def _session(call: PathCall) -> Run:
    number, passes, store, work = call.arg(0), call.arg(1), call.struct(), call.work

    def run(env: Env) -> None:
        found = env[work].session(number(env), passes(env))
        if found is None:
            store(env, [False, 0, 0, 0, 0])
        else:
            where = env[work].take_replicas(found.replicas)
            store(env, [True, *where, found.truncate, found.class_of_service])

    return run


def _session_native(call: NativePathCall) -> None:
    f, after = call.f, call.f.label()
    call.give_fields(0, 0, 0, 0, 0)
    first, count, truncate, service, _ = call.traffic.open_session(
        f, call.number(0), call.number(1), after
    )
    call.give_fields(1, first, count, truncate, service)
    f.go(after)
    f.at(after)


def _replica(call: PathCall) -> Run:
    number, store, work = call.arg(0), call.struct(), call.work

    def run(env: Env) -> None:
        replica = env[work].replicas[number(env)]
        store(env, [replica.port, replica.instance, replica.exclusion])

    return run


def _replica_native(call: NativePathCall) -> None:
    port, instance = call.traffic.replica(call.f, call.number(0))
    call.give_fields(port, instance, 0)


def _drop_port(call: Call) -> Run:
    port, store = call.state.drop_port, call.out(None)
    return lambda env: store(env, port)


def _drop_port_native(call: NativeCall) -> None:
    call.give(str(call.code.unit.drop_port), 64)


def _queue_times(call: PathCall) -> Run:
    port, store, state, work = call.arg(0), call.struct(), call.state, call.work

    def run(env: Env) -> None:
        times = env[work].waited
        if times is None:  # it did not wait here, others may at the port's interface
            queued = int(state.links.queued[port(env) % QUEUES])
            times = QueueTimes(state.microseconds() & _WORD, queued, 0, queued)
        entered, left = times.enq_timestamp, times.deq_qdepth
        store(env, [entered, times.enq_qdepth, times.deq_timedelta, left])

    return run


def _queue_times_native(call: NativePathCall) -> None:
    f, end = call.f, call.f.label()
    waited = f.compare("ne", "ptr", call.code.times, "null")
    with f.when(waited):
        entered, length, time, left = (
            f.load("i64", f.add(call.code.times, 8 * i), 8) for i in range(4)
        )
        call.give_fields(entered, length, time, left)
        f.go(end)
    port = f.binary("and", "i64", call.number(0), QUEUES - 1)
    queued = f.load("i64", f.item(f.word("queued"), "i64", port), 8)
    call.give_fields(f.word("microseconds", "i64"), queued, 0, queued)
    f.go(end)
    f.at(end)


# -- the rest -------------------------------------------------------------------------------------


def _microseconds(call: PathCall) -> Run:
    time, store = call.state.microseconds, call.out(None)
    return lambda env: store(env, time() & _WORD)


def _microseconds_native(call: NativePathCall) -> None:
    call.give(call.f.word("microseconds", "i64"), 64)


def _no_error(call: PathCall) -> Run:
    code, store = call.statements.error("NoError"), call.out(None)
    return lambda env: store(env, code)


def _no_error_native(call: NativePathCall) -> None:
    call.give(str(call.code.unit.errors["NoError"]), 64)


def _told(call: PathCall, event: Callable[[str], Any]) -> Run:
    text, work = call.name(0), call.work
    value = call.arg(1) if len(call.stmt.args) > 1 else None

    def run(env: Env) -> None:
        if env[work].events is not None:
            told = text if value is None else text.replace("{}", str(value(env)))
            env[work].note(event, told)

    return run


def _rejected(call: PathCall) -> Run:
    code, work, errors = call.arg(0), call.work, list(call.statements.expressions.errors)
    return lambda env: env[work].note(Rejected, errors[code(env)])


def _for_traces(call: NativePathCall) -> None:
    pass


IN_BODIES: dict[str, Extern] = {
    "drop_port": Extern(_drop_port, _drop_port_native),
}
"""The primitives that bodies of externs may use, too: they need no path."""

PRIMITIVES: dict[str, Primitive] = {
    **{name: Primitive(row.interpret, row.compile) for name, row in IN_BODIES.items()},
    "begin": Primitive(_begin, _begin_native),
    "copy": Primitive(_copy, _copy_native),
    "length": Primitive(_length, _length_native),
    "size": Primitive(_size, _size_native),
    "cut": Primitive(_cut, _cut_native),
    "keep": Primitive(_keep, _keep_native),
    "run": Primitive(_run, _run_native),
    "deparse": Primitive(_deparse, _deparse_native),
    "send": Primitive(_send, _send_native),
    "drop": Primitive(_drop, _drop_native),
    "again": Primitive(_again, _again_native),
    "enqueue": Primitive(partial(_leave, copied=True), _enqueue_native),
    "depart": Primitive(partial(_leave, copied=False), _depart_native),
    "send_digests": Primitive(_send_digests, _send_digests_native),
    "members": Primitive(_members, _members_native),
    "has_session": Primitive(_has_session, _has_session_native),
    "session": Primitive(_session, _session_native),
    "replica": Primitive(_replica, _replica_native),
    "queue_times": Primitive(_queue_times, _queue_times_native),
    "microseconds": Primitive(_microseconds, _microseconds_native),
    "no_error": Primitive(_no_error, _no_error_native),
    "enter": Primitive(partial(_told, event=Entered), _for_traces),
    "note": Primitive(partial(_told, event=Copied), _for_traces),
    "rejected": Primitive(_rejected, _for_traces),
}


def text_path(
    folder: Path, expansions: Callable[[ir.Program], Expansions] = lambda program: {}
) -> Callable[[ir.Program], weaving.Path]:
    """Return what weaves the path whose text is in a folder. expansions: returns what calls of the
    text stand for in a program, by their names."""

    def woven(program: ir.Program) -> weaving.Path:
        return weaving.weave(path_text(folder), program, PRIMITIVES, expansions(program))

    return woven
