"""The primitives of packet paths, a row each: the closure that the interpreter runs and the machine
code. Their types are in machine.p4.

Functions whose names end in `_native` write machine code. What has neither effect on packets nor a
result (`enter`, `note`) is for traces only, and has no machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, HeaderValue, Load, Run
from gradplane.switch.interp.packet import Layout as FieldLayout
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import NODE
from gradplane.switch.jit.externs import NativeCall, Site, post
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.headers import HeaderCodecs
from gradplane.switch.machine import kept_bytes, port_primitives, weaving
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.interpreted_paths import PathCall, SwitchPacket
from gradplane.switch.machine.native_paths import NativePathCall
from gradplane.switch.machine.native_traffic import LENGTH, size_of
from gradplane.switch.machine.path_texts import path_text
from gradplane.switch.machine.weaving import Expansions, Primitive
from gradplane.switch.runtime.control_messages import HEAD_BYTES, ReturnedPacket
from gradplane.switch.runtime.packet_passes import Arrival

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
    memory.context.copy(call.f, target, source)
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
    target = kept_bytes.keep(call.f, size)
    kept_bytes.kept(call.f, size)
    call.f.copy(target, address, size)
    call.give_bytes(target, size, "keep")


def _joined(call: PathCall) -> Run:
    first, rest, store = call.arg(0), call.arg(1), call.struct()

    def run(env: Env) -> None:
        whole = first(env)[0] + rest(env)[0]
        store(env, [whole, len(whole)])

    return run


def _joined_native(call: NativePathCall) -> None:
    f, (first, head), (rest, size) = call.f, call.bytes(0), call.bytes(1)
    whole = f.binary("add", "i64", head, size)
    target = kept_bytes.keep(f, whole)
    f.copy(target, first, head)
    f.copy(f.add(target, head), rest, size)
    kept_bytes.kept(f, whole)
    call.give_bytes(target, whole, "keep")


def _nothing(call: Call) -> Run:
    target = call.stmt.result
    assert target is not None
    store = call.statements.store(target)
    return lambda env: store(env, [b"", 0])


def _nothing_native(call: NativeCall) -> None:
    target = call.stmt.result
    assert target is not None
    call.f.clear(call.code.place(target), call.code.layouts.of(target.type).size)


def _encoded(call: Call) -> Run:
    data, target = call.data(0), call.stmt.result
    assert target is not None
    store = call.statements.store(target)

    def run(env: Env) -> None:
        found = data(env)
        store(env, [found, len(found)])

    return run


def _encoded_native(call: NativeCall) -> None:
    f, target = call.f, call.stmt.result
    assert target is not None
    address, size = FieldList(call.code, [call.args[0]]).written()
    copied = kept_bytes.keep(f, size)
    f.copy(copied, address, size)
    kept_bytes.kept(f, size)
    place = call.code.place(target)
    f.store("ptr", copied, place, 8)
    f.store("i64", size, f.add(place, 8), 8)


def _header(e: ir.Expr | None) -> Header:
    assert e is not None and isinstance(e.type, Header), e
    return e.type


def _behind(call: PathCall) -> Run:
    header, data, store = call.arg(0), call.arg(1), call.struct()
    layout = FieldLayout([f.type for f in _header(call.stmt.args[0]).fields])

    def run(env: Env) -> None:
        whole = layout.encode(header(env).fields) + data(env)[0]
        store(env, [whole, len(whole)])

    return run


def _behind_native(call: NativePathCall) -> None:
    f, t, (address, size) = call.f, _header(call.args[0]), call.bytes(1)
    front = size_of(t)
    start = f.add(address, -front)
    HeaderCodecs(call.code.unit).encode(f, t, call.code.address(call.args[0]), start)
    call.give_bytes(start, f.binary("add", "i64", size, front), "")


def _read(call: PathCall) -> Run:
    data, target = call.arg(0), call.stmt.result
    t = _header(target)
    assert target is not None
    store = call.statements.store(target)
    layout, size = FieldLayout([f.type for f in t.fields]), size_of(t)

    def run(env: Env) -> None:
        fields = layout.decode(data(env)[0][:size].ljust(size, b"\0"))
        store(env, HeaderValue(True, fields))

    return run


def _read_native(call: NativePathCall) -> None:
    f, target, (address, size) = call.f, call.stmt.result, call.bytes(0)
    t = _header(target)
    assert target is not None
    buffer = f.alloca(size_of(t))
    f.clear(buffer, size_of(t))
    args = (("i64", size), ("i64", size_of(t)))
    f.copy(buffer, address, f.intrinsic("llvm.umin.i64", "i64", *args))
    place = call.code.place(target)
    HeaderCodecs(call.code.unit).decode(f, t, buffer, place, 0)
    f.store("i8", 1, f.add(place, call.code.layouts.of(t).valid))


def _measure(call: PathCall) -> Run:
    slot, length = call.packet(0).packet, call.arg(1)

    def run(env: Env) -> None:
        env[slot].length = length(env)

    return run


def _measure_native(call: NativePathCall) -> None:
    memory, c = call.code.packet(call.args[0])
    memory.context.set(call.f, c, LENGTH, call.number(1))


# -- the program's blocks -----------------------------------------------------------------------


def _ran(call: PathCall, name: str, first: int) -> Load:
    """Return the function that runs a block on values of a packet; it gives a parser's error."""
    compiled = call.compiled
    block, packet = compiled.blocks[name], call.owner(first)
    slots, notes, own = block.slots, compiled.notes, packet.notes
    pairs = list(zip(slots, compiled.part_slots(packet, name), strict=True))

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
    name, store, work = call.name(0), call.out(None), call.work
    ran = _ran(call, name, 1)
    if isinstance(call.compiled.pipeline.blocks[name][0], ir.Parser):
        return lambda env: store(env, ran(env))
    packet, slots = call.owner(1), call.compiled.blocks[name].slots
    parts, state = call.compiled.part_slots(packet, name), call.state

    def run(env: Env) -> None:
        env[work].behind_parser()
        probe = state.probe if env[work].events is not None else None
        if probe is None:
            ran(env)
            return
        given = [env[part] for part in parts]
        probe.begin(name, state.current_pipe.number, given, lambda: [env[s] for s in slots])
        ran(env)
        probe.end()

    return run


def _run_native(call: NativePathCall) -> None:
    _, c = call.code.owner(call.args[1])
    result = call.code.run_block(call.name(0), c)
    call.give(result, 32)


def _run_one(call: PathCall) -> Run:
    """Return the closure that runs one of several parsers."""
    names, number, store = call.numbered_blocks(), call.arg(1), call.out(None)
    ran = [_ran(call, name, 2) for name in names]
    return lambda env: store(env, ran[number(env)](env))


def _run_one_native(call: NativePathCall) -> None:
    f, names, (_, c) = call.f, call.numbered_blocks(), call.code.owner(call.args[2])
    if len(names) == 1:
        call.give(call.code.run_block(names[0], c), 32)
        return
    result, end, labels = f.variable("i32", 0), f.label(), [f.label() for _ in names]
    f.choose("i64", call.number(1), end, list(enumerate(labels)))
    for name, label in zip(names, labels, strict=True):
        f.at(label)
        result.set(call.code.run_block(name, c))
        f.go(end)
    f.at(end)
    call.give(result.get(), 32)


def _deparse(call: PathCall) -> Run:
    ran, slot, store = _ran(call, call.name(0), 2), call.owner(2).packet, call.struct()

    def run(env: Env) -> None:
        ran(env)
        data = env[slot].output()
        store(env, [data, len(data)])

    return run


def _deparse_native(call: NativePathCall) -> None:
    f, code = call.f, call.code
    name, home = call.name(0), call.name(1)
    memory, c = code.owner(call.args[2])
    length = f.binary("lshr", "i64", memory.context.get(f, c, "bits"), 3)
    room = f.binary("add", "i64", length, code.pipeline.emitted[name] + 16)
    if home == "again":
        code.node.set(f.call("ptr", "make_node", *(("i64", v) for v in (room, 0, 0, 0))))
        target = f.load("ptr", code.node.get(), 8)
    elif home == "send":
        target = native_memory.reserve(f, "out", room)
    else:
        target = kept_bytes.keep(f, room)
        kept_bytes.kept(f, room)  # at once: a deparser keeps headers
    parts = (("ptr", part) for part in (*c, target))
    size = f.call("i64", code.pipeline.deparser(name), *parts)
    with f.when(f.compare("slt", "i64", size, 0)):
        call.traffic.fault(f, f.op(f"sub i64 0, {size}"))
        f.go(code.failed)
    call.give_bytes(target, size, home)


# -- where packets go -----------------------------------------------------------------------------


def _send(call: PathCall) -> Run:
    port, data, work = call.arg(0), call.arg(1), call.work
    return lambda env: env[work].send(port(env), data(env)[0])


def _send_native(call: NativePathCall) -> None:
    address, size = call.bytes(1)
    f = call.f
    if call.home(1) != "send":
        target = native_memory.reserve(f, "out", size)
        with f.when(f.compare("ne", "ptr", target, address)):  # a deparser may have written there
            f.copy(target, address, size)
    port = call.number(0)
    native_memory.extend(f, "out", size)
    record = native_memory.reserve(f, "sent", 24)
    cause = f.word("cause", "i64", fixed=False)
    for i, value in enumerate((port, native_memory.length(f, "out"), cause)):
        f.store("i64", value, f.add(record, 8 * i), 8)
    native_memory.extend(f, "sent", 24)


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
    traffic.keep(call.code, call.args[4:], node)
    traffic.take_node(f, node, size)


def _departure(call: PathCall, copied: bool, first: int = 2) -> list[Load]:
    """Return the functions that give the arguments of another entry point."""
    loads: list[Load] = []
    for i, arg in enumerate(call.stmt.args[first:], first):
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
    f, end = call.f, call.f.label()
    empty = f.compare("eq", "i64", native_memory.length(f, "queue"), 0)
    waits = f.op(f"xor i1 {empty}, true")
    with f.when(f.binary("or", "i1", waits, call.traffic.engaged(f))):
        call.code.push(call.number(0), call.number(1), call.args[2:])
        f.go(end)
    call.code.call_entry("egress", call.args[2:], ("ptr", "null"))
    f.at(end)


def _call(call: PathCall) -> Run:
    entry, loads = call.compiled.entry(call.name(0)), _departure(call, False, 1)
    return lambda env: entry([load(env) for load in loads])


def _call_native(call: NativePathCall) -> None:
    call.code.call_entry(call.name(0), call.args[1:])


def _send_digests(call: PathCall) -> Run:
    slot, report = call.packet(0).packet, call.state.report
    pipe = call.arg(1) if len(call.stmt.args) > 1 else None

    def run(env: Env) -> None:
        for digest in env[slot].digests:
            report(digest if pipe is None else replace(digest, pipe=pipe(env)))

    return run


def _send_digests_native(call: NativePathCall) -> None:
    f = call.f
    if not call.traffic.has_digests:
        return
    if len(call.args) > 1:
        with f.when(f.compare("ne", "i64", native_memory.length(f, "digests"), 0)):
            pipe = f.alloca(8)
            f.store("i64", call.number(1), pipe, 8)
            post(f, "messages", call.externs.site(Site("pipe", "")), pipe, 8)
    size = native_memory.length(f, "digests")
    with f.when(f.compare("ne", "i64", size, 0)):
        to = native_memory.reserve(f, "messages", size)
        f.copy(to, native_memory.data(f, "digests"), size)
        native_memory.extend(f, "messages", size)


def _report_returned(call: PathCall) -> Run:
    port, data, state = call.arg(0), call.arg(1), call.state

    def run(env: Env) -> None:
        if state.links.recirculation[0]:
            head = data(env)[0][:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
            state.report(ReturnedPacket(port(env), head))

    return run


def _report_returned_native(call: NativePathCall) -> None:
    f, (address, size) = call.f, call.bytes(1)
    wanted = f.load("i8", f.word("recirculation"), 1)
    with f.when(f.compare("ne", "i8", wanted, 0)):
        record = f.alloca(8 + HEAD_BYTES)
        f.clear(record, 8 + HEAD_BYTES)
        f.store("i64", call.number(0), record, 8)
        count = f.intrinsic("llvm.umin.i64", "i64", ("i64", size), ("i64", HEAD_BYTES))
        f.copy(f.add(record, 8), address, count)
        site = call.externs.site(Site("returned", ""))
        post(f, "messages", site, record, 8 + HEAD_BYTES)


# -- the rest -------------------------------------------------------------------------------------


def _no_error(call: PathCall) -> Run:
    code, store = call.statements.error("NoError"), call.out(None)
    return lambda env: store(env, code)


def _no_error_native(call: NativePathCall) -> None:
    call.give(str(call.code.unit.errors["NoError"]), 64)


def _told(call: PathCall, event: str) -> Run:
    text, work = call.name(0), call.work
    value = call.arg(1) if len(call.stmt.args) > 1 else None

    def run(env: Env) -> None:
        if env[work].events is not None:
            told = text if value is None else text.replace("{}", str(value(env)))
            env[work].note(event, told)

    return run


def _rejected(call: PathCall) -> Run:
    code, work, errors = call.arg(0), call.work, list(call.statements.expressions.errors)
    return lambda env: env[work].note("reject", errors[code(env)])


def _for_traces(call: NativePathCall) -> None:
    pass


IN_BODIES: dict[str, Extern] = {
    "drop_port": port_primitives.DROP_PORT,
    "encoded": Extern(_encoded, _encoded_native),
    "nothing": Extern(_nothing, _nothing_native),
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
    "joined": Primitive(_joined, _joined_native),
    "behind": Primitive(_behind, _behind_native),
    "read": Primitive(_read, _read_native),
    "measure": Primitive(_measure, _measure_native),
    "run": Primitive(_run, _run_native),
    "run_one": Primitive(_run_one, _run_one_native),
    "deparse": Primitive(_deparse, _deparse_native),
    "send": Primitive(_send, _send_native),
    "drop": Primitive(_drop, _drop_native),
    "again": Primitive(_again, _again_native),
    "enqueue": Primitive(partial(_leave, copied=True), _enqueue_native),
    "depart": Primitive(partial(_leave, copied=False), _depart_native),
    "call": Primitive(_call, _call_native),
    "send_digests": Primitive(_send_digests, _send_digests_native),
    "report_returned": Primitive(_report_returned, _report_returned_native),
    **port_primitives.PRIMITIVES,
    "no_error": Primitive(_no_error, _no_error_native),
    "enter": Primitive(partial(_told, event="enter"), _for_traces),
    "note": Primitive(partial(_told, event="copy"), _for_traces),
    "rejected": Primitive(_rejected, _for_traces),
}


def text_path(
    folder: Path, expansions: Callable[[ir.Program], Expansions] = lambda program: {}
) -> Callable[[ir.Program], weaving.Path]:
    """Return what weaves the path whose text is in a folder around a whole program. expansions:
    returns what calls of the text stand for in a program, by their names."""

    def woven(program: ir.Program) -> weaving.Path:
        text = path_text(folder)
        around = weaving.Surroundings(program.package, expansions(program))
        return weaving.Path([weaving.weave(text, around)], text.controls, text.notes, PRIMITIVES)

    return woven
