"""The primitives that ask a switch for its groups, sessions, ports and times, a row each, as those
in `primitives`."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.interpreted_paths import PathCall
from gradplane.switch.machine.native_paths import NativePathCall
from gradplane.switch.machine.weaving import Primitive
from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.packet_passes import (
    CLONE_LIMIT,
    CLONED_TOO_OFTEN,
    PASS_LIMIT,
    TOO_MANY_CLONES,
)
from gradplane.switch.runtime.port_queues import QueueTimes

_WORD = (1 << 64) - 1
_NONE = (1 << 32) - 1

# -- groups and sessions --------------------------------------------------------------------------


def _members(call: PathCall) -> Run:
    group, store, work = call.arg(0), call.struct(), call.work

    def run(env: Env) -> None:
        store(env, [*env[work].take_replicas(env[work].members(group(env)))])

    return run


def _members_native(call: NativePathCall) -> None:
    """Give a group's replicas; if there are none, count a drop."""
    f, traffic, after = call.f, call.traffic, call.f.label()
    call.give_fields(0, 0)
    group = call.number(0)
    with f.when(f.compare("uge", "i64", group, traffic.unit.groups)):
        traffic.count_drop(f, "beyond")
        f.go(after)
    row = _group_row(f, group)
    first, count = f.load("i64", row, 8), f.load("i64", f.add(row, 8), 8)
    with f.when(f.compare("eq", "i64", count, 0)):
        lost = f.item(f.word("lost groups"), "i64", group)
        f.store("i64", f.binary("add", "i64", f.load("i64", lost, 8), 1), lost, 8)
        traffic.count_drop(f, "groups")
        f.go(after)
    call.give_fields(first, count)
    f.go(after)
    f.at(after)


def _group_row(f: Function, group: Operand) -> Operand:
    return f.add(f.word("groups"), f.binary("shl", "i64", group, 4))


def _has_members(call: PathCall) -> Run:
    group, store, groups = call.arg(0), call.out(None), call.state.multicast
    return lambda env: store(env, bool(groups.get(group(env))))


def _has_members_native(call: NativePathCall) -> None:
    f = call.f
    count = f.load("i64", f.add(_group_row(f, call.number(0)), 8), 8)
    call.give(f.compare("ne", "i64", count, 0), 1)


def _has_session(call: PathCall) -> Run:
    number, store, sessions = call.arg(0), call.out(None), call.state.clone_sessions
    return lambda env: store(env, number(env) in sessions)


def _has_session_native(call: NativePathCall) -> None:
    call.give(_session_exists(call, call.number(0)), 1)


def _session_exists(call: NativePathCall, session: Operand) -> Operand:
    f = call.f
    known = f.compare("ult", "i64", session, call.traffic.unit.sessions)
    row = _session_row(f, f.select(known, "i64", session, 0))
    exists = f.compare("ne", "i64", f.load("i64", f.add(row, 24), 8), 0)
    return f.binary("and", "i1", known, exists)


def _session_row(f: Function, session: Operand) -> Operand:
    return f.add(f.word("sessions"), f.binary("shl", "i64", session, 5))


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
    """Give a session, unless there is none or its clones take too many passes."""
    f, traffic, after = call.f, call.traffic, call.f.label()
    call.give_fields(0, 0, 0, 0, 0)
    session, passes = call.number(0), call.number(1)
    with f.unless(_session_exists(call, session)):
        f.go(after)
    more = f.binary("add", "i64", passes, 1)
    with f.when(f.compare("uge", "i64", more, PASS_LIMIT)):
        traffic.fault(f, call.externs.fault(CLONED_TOO_OFTEN))
        f.go(after)
    row = _session_row(f, session)
    first, count, truncate, service = (f.load("i64", f.add(row, 8 * i), 8) for i in range(4))
    clones = f.binary("add", "i64", f.word("clones", "i64", fixed=False), count)
    f.store("i64", clones, f.word_address("clones"), 8)
    with f.when(f.compare("ugt", "i64", clones, CLONE_LIMIT)):
        traffic.fault(f, call.externs.fault(TOO_MANY_CLONES))
        f.go(after)
    call.give_fields(1, first, count, truncate, f.binary("sub", "i64", service, 1))
    f.go(after)
    f.at(after)


def _replica(call: PathCall) -> Run:
    number, store, work = call.arg(0), call.struct(), call.work

    def run(env: Env) -> None:
        replica = env[work].replicas[number(env)]
        exclusion = _NONE if replica.exclusion is None else replica.exclusion
        store(env, [replica.port, replica.instance, exclusion])

    return run


def _replica_native(call: NativePathCall) -> None:
    f, number = call.f, call.number(0)
    replica = f.add(f.word("replicas"), f.binary("shl", "i64", number, 4))
    port, instance = f.load("i64", replica, 8), f.load("i64", f.add(replica, 8), 8)
    call.give_fields(port, instance, f.load("i64", f.item(f.word("exclusions"), "i64", number), 8))


# -- ports ----------------------------------------------------------------------------------------


def _drop_port(call: Call) -> Run:
    port, store = call.state.drop_port, call.out(None)
    return lambda env: store(env, port)


def _drop_port_native(call: NativeCall) -> None:
    call.give(str(call.code.unit.drop_port), 64)


DROP_PORT = Extern(_drop_port, _drop_port_native)


def _setting(call: PathCall, read: Callable[[], int | None]) -> Run:
    """Return the closure that gives a setting of the switch, all ones if it has none."""
    store = call.out(None)

    def run(env: Env) -> None:
        value = read()
        store(env, _NONE if value is None else value)

    return run


def _cpu_port(call: PathCall) -> Run:
    return _setting(call, lambda: call.state.cpu_port)


def _cpu_port_native(call: NativePathCall) -> None:
    call.give(call.f.word("cpu port", "i64"), 64)


def _global_rid(call: PathCall) -> Run:
    return _setting(call, lambda: call.state.global_rid)


def _global_rid_native(call: NativePathCall) -> None:
    call.give(call.f.word("global rid", "i64"), 64)


def _pruned(call: PathCall) -> Run:
    exclusion, port, store = call.arg(0), call.arg(1), call.out(None)
    rows = call.state.pruned
    return lambda env: store(env, bool(rows[exclusion(env), port(env)]))


def _pruned_native(call: NativePathCall) -> None:
    f, ports = call.f, call.traffic.path.ports
    row = f.binary("mul", "i64", call.number(0), ports)
    place = f.add(f.word("pruned"), f.binary("add", "i64", row, call.number(1)))
    call.give(f.compare("ne", "i8", f.load("i8", place, 1), 0), 1)


def _leads_back(call: PathCall) -> Run:
    port, store, links = call.arg(0), call.out(None), call.state.links
    return lambda env: store(env, bool(links.loopback[port(env) % QUEUES]))


def _leads_back_native(call: NativePathCall) -> None:
    f = call.f
    at = f.binary("and", "i64", call.number(0), QUEUES - 1)
    flag = f.load("i8", f.add(f.word("loopback"), at), 1)
    call.give(f.compare("ne", "i8", flag, 0), 1)


def _port_metadata(call: PathCall) -> Run:
    port, store, rows = call.arg(0), call.struct(), call.state.port_metadata

    def run(env: Env) -> None:
        found = rows[port(env)].tobytes()
        store(env, [found, len(found)])

    return run


def _port_metadata_native(call: NativePathCall) -> None:
    f, size = call.f, call.traffic.path.port_metadata
    place = f.add(f.word("port metadata"), f.binary("mul", "i64", call.number(0), size))
    call.give_bytes(place, str(size), "")


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


# -- times ----------------------------------------------------------------------------------------


def _microseconds(call: PathCall) -> Run:
    time, store = call.state.microseconds, call.out(None)
    return lambda env: store(env, time() & _WORD)


def _microseconds_native(call: NativePathCall) -> None:
    call.give(call.f.word("microseconds", "i64"), 64)


def _nanoseconds(call: PathCall) -> Run:
    time, store = call.state.nanoseconds, call.out(None)
    return lambda env: store(env, time() & _WORD)


def _nanoseconds_native(call: NativePathCall) -> None:
    call.give(call.f.word("nanoseconds", "i64"), 64)


PRIMITIVES: dict[str, Primitive] = {
    "members": Primitive(_members, _members_native),
    "has_members": Primitive(_has_members, _has_members_native),
    "has_session": Primitive(_has_session, _has_session_native),
    "session": Primitive(_session, _session_native),
    "replica": Primitive(_replica, _replica_native),
    "cpu_port": Primitive(_cpu_port, _cpu_port_native),
    "global_rid": Primitive(_global_rid, _global_rid_native),
    "pruned": Primitive(_pruned, _pruned_native),
    "leads_back": Primitive(_leads_back, _leads_back_native),
    "port_metadata": Primitive(_port_metadata, _port_metadata_native),
    "queue_times": Primitive(_queue_times, _queue_times_native),
    "microseconds": Primitive(_microseconds, _microseconds_native),
    "nanoseconds": Primitive(_nanoseconds, _nanoseconds_native),
}
