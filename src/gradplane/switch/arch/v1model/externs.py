"""v1model's externs: one row each, with where it may be called and what it does.

A builder takes a call and gives the closure that executes it. What has effects later (clone,
resubmit, ...) is noted on the packet, which the traffic manager reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from gradplane.switch.arch.direct_resources import counting, metering
from gradplane.switch.arch.extern_call import Call, refuse
from gradplane.switch.arch.externs import (
    Extern,
    ExternCompiler,
    Externs,
    algorithm,
    check_that,
    count,
    nothing,
    register_read,
    register_write,
    scaled,
)
from gradplane.switch.arch.fieldlists import NO_LIST
from gradplane.switch.arch.v1packet import V1Packet
from gradplane.switch.interp.frame_layout import Env, Load, Run
from gradplane.switch.interp.interpreter_values import copier, plain
from gradplane.switch.interp.trace_events import Logged, value_text
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.runtime.control_messages import Digest
from gradplane.switch.runtime.hashes import HASHES

log = logging.getLogger("gradplane.switch")

# -- arrays -------------------------------------------------------------------------------------


def _register_read(call: Call) -> Run:
    return register_read(call, call.out(0), call.arg(1))


def _execute_meter(call: Call) -> Run:
    meter, index, store = call.state.meters[call.instance.name], call.arg(0), call.out(1)
    clock = call.state.clock
    return lambda env: store(env, meter.execute(index(env), clock(), env[0].length))


def _read_direct_meter(call: Call) -> Run:
    store, name = call.out(0), call.instance.name
    return lambda env: store(env, env[0].colours.get(name, 0))


# -- numbers ------------------------------------------------------------------------------------


def _random(call: Call) -> Run:
    store, low, high = call.out(0), call.arg(1), call.arg(2)
    between = call.state.chance.between
    return lambda env: store(env, between(low(env), high(env)))


def _hash(call: Call) -> Run:
    compute = _hasher(call, name=1, data=3)
    return scaled(call.out(0), compute, call.arg(2), call.bits(4))


def _hasher(call: Call, name: int, data: int) -> Load:
    chosen, fields = call.name(name), call.data(data)
    if chosen == "random":
        draw = call.state.chance.draw
        return lambda env: draw()
    compute = call.state.crcs.get(call.stmt) or algorithm(call, chosen)
    return lambda env: compute(fields(env))


def _verify_checksum(call: Call) -> Run:
    return _verify(call, lambda packet: b"")


def _verify_with_payload(call: Call) -> Run:
    return _verify(call, lambda packet: packet.payload())


def _verify(call: Call, payload: Callable[[V1Packet], bytes]) -> Run:
    cond, data, expected = call.arg(0), call.data(1), call.arg(2)
    compute, width = algorithm(call, call.name(3)), call.stmt.args[2].type

    def run(env: Env) -> None:
        if cond(env):
            computed = compute(data(env) + payload(env[0]))
            if _fit(width, computed) != expected(env):
                env[0].checksum_error = True

    return run


def _update_checksum(call: Call) -> Run:
    return _update(call, lambda packet: b"")


def _update_with_payload(call: Call) -> Run:
    return _update(call, lambda packet: packet.payload())


def _update(call: Call, payload: Callable[[V1Packet], bytes]) -> Run:
    cond, data, store = call.arg(0), call.data(1), call.out(2)
    compute = algorithm(call, call.name(3))

    def run(env: Env) -> None:
        if cond(env):
            store(env, compute(data(env) + payload(env[0])))

    return run


def _fit(t: Type, number: int) -> int:
    width = getattr(t, "width", 1)
    return number & ((1 << width) - 1)


def _checksum16(call: Call) -> Run:
    store, data, compute = call.result(), call.data(0), HASHES["csum16"]
    return lambda env: store(env, compute(data(env)))


# -- the packet's way ---------------------------------------------------------------------------


def _mark_to_drop(call: Call) -> Run:
    metadata, t = call.arg(0), call.stmt.args[0].type
    spec, group = (_field(call, name) for name in ("egress_spec", "mcast_grp"))
    assert isinstance(t, Fields)
    port = _fit(t.fields[spec].type, call.state.drop_port)

    def run(env: Env) -> None:
        fields = metadata(env)
        fields[spec] = port
        fields[group] = 0

    return run


def _field(call: Call, name: str) -> int:
    t = call.stmt.args[0].type
    index = t.index(name) if isinstance(t, Fields) else None
    if index is None:
        raise refuse(call.stmt.span, f"{t} has no field {name}")
    return index


def _clone(call: Call) -> Run:
    return _note_clone(call, lambda env: NO_LIST)


def _clone_preserving(call: Call) -> Run:
    return _note_clone(call, call.arg(2))


def _note_clone(call: Call, field_list: Load) -> Run:
    """The last call counts."""
    session = call.arg(1)

    def run(env: Env) -> None:
        env[0].clone = session(env), field_list(env)

    return run


def _resubmit_preserving(call: Call) -> Run:
    return _noted("resubmit", call.arg(0))


def _recirculate_preserving(call: Call) -> Run:
    return _noted("recirculate", call.arg(0))


def _truncate(call: Call) -> Run:
    """The smallest of all lengths counts."""
    length = call.arg(0)

    def run(env: Env) -> None:
        packet, most = env[0], length(env)
        packet.truncate = most if packet.truncate is None else min(most, packet.truncate)

    return run


def _noted(what: str, value: Load) -> Run:
    return lambda env: setattr(env[0], what, value(env))


def _no_metadata(call: Call) -> Run:
    """The older calls: where they name metadata only, `fieldlists` has made newer ones of them."""
    raise refuse(
        call.stmt.span,
        f"{call.stmt.name} can only preserve fields of the metadata parameters",
        "copy what is to be kept to metadata before",
    )


# -- messages -----------------------------------------------------------------------------------


def _digest(call: Call) -> Run:
    load, kind = call.arg(1), call.stmt.args[1].type
    copy, name = copier(kind), str(kind)

    def run(env: Env) -> None:
        env[0].digests.append(Digest(name, kind, copy(load(env))))

    return run


def _log_msg(call: Call) -> Run:
    form, kind, load = call.name(0), None, None
    if len(call.stmt.args) > 1:
        load, kind = call.arg(1), call.stmt.args[1].type

    def run(env: Env) -> None:
        events = env[0].events
        if events is not None or log.isEnabledFor(logging.INFO):
            message = log_message(form, kind, None if load is None else load(env))
            log.info("%s", message)
            if events is not None:
                events.append(Logged(message, span=call.stmt.span))

    return run


def log_message(form: str, kind: Type | None, value: Any) -> str:
    """What log_msg says; `kind` None: without data."""
    if kind is None:
        return _formatted(form, [])
    found = plain(kind, value)
    if isinstance(found, dict):
        found = list(found.values())
    values = found if isinstance(found, list) else [found]
    return _formatted(form, [value_text(v) for v in values])


def _formatted(form: str, values: list[str]) -> str:
    """Each {} in turn becomes a value; those left over are added at the end."""
    pieces = form.split("{}")
    out = pieces[0]
    for i, piece in enumerate(pieces[1:]):
        out += (values[i] if i < len(values) else "{}") + piece
    return " ".join([out, *values[len(pieces) - 1 :]])


# -- the table ----------------------------------------------------------------------------------

VERIFY, INGRESS, EGRESS = frozenset({"vr"}), frozenset({"ig"}), frozenset({"eg"})
COMPUTE = frozenset({"ck"})

EXTERNS: Externs = {
    ("register", "read"): Extern(_register_read),
    ("register", "write"): Extern(register_write),
    ("counter", "count"): Extern(count),
    ("direct_counter", "count"): Extern(nothing),  # the table counts each hit, called or not
    ("meter", "execute_meter"): Extern(_execute_meter),
    ("direct_meter", "read"): Extern(_read_direct_meter),
    ("Checksum16", "get"): Extern(_checksum16),
    ("", "random"): Extern(_random),
    ("", "hash"): Extern(_hash),
    ("", "verify_checksum"): Extern(_verify_checksum, VERIFY),
    ("", "verify_checksum_with_payload"): Extern(_verify_with_payload, VERIFY),
    ("", "update_checksum"): Extern(_update_checksum, COMPUTE),
    ("", "update_checksum_with_payload"): Extern(_update_with_payload, COMPUTE),
    ("", "mark_to_drop"): Extern(_mark_to_drop, frozenset({"p"}) | INGRESS | EGRESS),
    ("", "clone"): Extern(_clone, INGRESS | EGRESS),
    ("", "clone_preserving_field_list"): Extern(_clone_preserving, INGRESS | EGRESS),
    ("", "clone3"): Extern(_no_metadata, INGRESS | EGRESS),
    ("", "resubmit"): Extern(_no_metadata, INGRESS),
    ("", "resubmit_preserving_field_list"): Extern(_resubmit_preserving, INGRESS),
    ("", "recirculate"): Extern(_no_metadata, EGRESS),
    ("", "recirculate_preserving_field_list"): Extern(_recirculate_preserving, EGRESS),
    ("", "truncate"): Extern(_truncate),
    ("", "digest"): Extern(_digest, INGRESS),
    ("", "assert"): Extern(check_that),
    ("", "assume"): Extern(check_that),
    ("", "log_msg"): Extern(_log_msg),
}

INSTANCES = frozenset(
    {"register", "counter", "direct_counter", "meter", "direct_meter", "action_profile",
     "action_selector", "Checksum16"}
)  # fmt: skip

COMPILER = ExternCompiler(EXTERNS, INSTANCES, counting, metering)
