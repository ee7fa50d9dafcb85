"""PSA's externs: one row each, with where it may be called and what it does."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.arch.direct_resources import counter_found, meter_found
from gradplane.switch.arch.extern_call import Call
from gradplane.switch.arch.externs import (
    Extern,
    ExternCompiler,
    Externs,
    algorithm,
    check_that,
    count,
    register_read,
    register_write,
    scaled,
)
from gradplane.switch.arch.psapacket import PORT_RECIRCULATE
from gradplane.switch.interp.frame_layout import Env, Load, Run
from gradplane.switch.interp.interpreter_values import copier
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.runtime.control_messages import Digest
from gradplane.switch.runtime.hashes import STEPS, add16, checksum_of, subtract16
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

COLOURS = (RED, GREEN, YELLOW)  # PSA_MeterColor_t's members in order, as meters number them
COLOUR_NAMES = ("RED", "GREEN", "YELLOW")
_CODES = {colour: code for code, colour in enumerate(COLOURS)}

# -- counters, meters, registers ----------------------------------------------------------------


def _register_read(call: Call) -> Run:
    return register_read(call, call.result(), call.arg(0))


def _count_direct(call: Call) -> Run:
    name = call.instance.name
    return lambda env: env[0].found[name].add(env[0].length)


def _execute(call: Call) -> Run:
    meter, index, store = call.state.meters[call.instance.name], call.arg(0), call.result()
    before, clock = _colour(call, 1), call.state.clock

    def run(env: Env) -> None:
        colour = meter.execute(index(env), clock(), env[0].length, before(env))
        store(env, _CODES[colour])

    return run


def _execute_direct(call: Call) -> Run:
    name, store, before = call.instance.name, call.result(), _colour(call, 0)
    by_packets, clock = call.instance.args[0] == "PACKETS", call.state.clock

    def run(env: Env) -> None:
        colour = env[0].found[name].execute(clock(), env[0].length, by_packets, before(env))
        store(env, _CODES[colour])

    return run


def _colour(call: Call, position: int) -> Load:
    """An optional argument: the colour before. Constants of an enum are passed by name."""
    if len(call.stmt.args) <= position:
        return lambda env: GREEN
    arg = call.stmt.args[position]
    if isinstance(arg, ir.Const) and isinstance(arg.value, str):
        known = COLOURS[COLOUR_NAMES.index(arg.value)]
        return lambda env: known
    code = call.arg(position)
    return lambda env: COLOURS[code(env)]


# -- numbers ------------------------------------------------------------------------------------


def _random(call: Call) -> Run:
    low, high = call.instance.args
    assert isinstance(low, int) and isinstance(high, int)
    between, store = call.state.chance.between, call.result()
    return lambda env: store(env, between(low, high))


def _get_hash(call: Call) -> Run:
    """get_hash(data), or get_hash(base, data, max)."""
    store, with_bounds = call.result(), len(call.stmt.args) > 1
    compute, data = algorithm(call, _algorithm(call)), call.data(int(with_bounds))
    if with_bounds:
        return scaled(store, lambda env: compute(data(env)), call.arg(0), call.arg(2))
    return lambda env: store(env, compute(data(env)))


def _algorithm(call: Call) -> str:
    return str(call.instance.args[0]).lower()


def _clear(call: Call) -> Run:
    store = call.out(0)
    return lambda env: store(env, 0)


def _update(call: Call) -> Run:
    return _step(call, STEPS[_algorithm(call)])


def _add(call: Call) -> Run:
    return _step(call, add16)


def _subtract(call: Call) -> Run:
    return _step(call, subtract16)


def _step(call: Call, step: Callable[[bytes, int], int]) -> Run:
    state, store, data = call.arg(0), call.out(0), call.data(1)
    return lambda env: store(env, step(data(env), state(env)))


def _get_checksum(call: Call) -> Run:
    name, state, store = _algorithm(call), call.arg(0), call.result()
    return lambda env: store(env, checksum_of(name, state(env)))


def _get(call: Call) -> Run:
    state, store = call.arg(0), call.result()
    return lambda env: store(env, state(env) ^ 0xFFFF)


def _get_state(call: Call) -> Run:
    state, store = call.arg(0), call.result()
    return lambda env: store(env, state(env))


def _set_state(call: Call) -> Run:
    store, value = call.out(0), call.arg(1)
    return lambda env: store(env, value(env))


# -- the packet's way ---------------------------------------------------------------------------


def _says(test: Callable[[Load, Load], Load], *names: str) -> Callable[[Call], Run]:
    """A function of two fields of the output metadata."""

    def build(call: Call) -> Run:
        first, second = (_field(call, 0, name) for name in names)
        result, store = test(first, second), call.result()
        return lambda env: store(env, result(env))

    return build


def _field(call: Call, position: int, name: str) -> Load:
    t, struct = call.stmt.args[position].type, call.arg(position)
    index = t.index(name) if isinstance(t, Fields) else None
    assert index is not None, name
    return lambda env: struct(env)[index]


def _only(first: Load, second: Load) -> Load:
    return first


def _unless(drop: Load, other: Load) -> Load:
    return lambda env: not drop(env) and other(env)


def _neither(drop: Load, other: Load) -> Load:
    return lambda env: not drop(env) and not other(env)


def _recirculates(call: Call) -> Run:
    drop, port, store = _field(call, 0, "drop"), _field(call, 1, "egress_port"), call.result()
    return lambda env: store(env, not drop(env) and port(env) == PORT_RECIRCULATE)


def _pack(call: Call) -> Run:
    load, kind = call.arg(0), call.stmt.args[0].type
    copy, name = copier(kind), call.instance.name

    def run(env: Env) -> None:
        env[0].digests.append(Digest(name, kind, copy(load(env))))

    return run


# -- the table ----------------------------------------------------------------------------------

INGRESS_DEPARSER, EGRESS_DEPARSER = frozenset({"ingress.id"}), frozenset({"egress.ed"})

EXTERNS: Externs = {
    ("Register", "read"): Extern(_register_read),
    ("Register", "write"): Extern(register_write),
    ("Counter", "count"): Extern(count),
    ("DirectCounter", "count"): Extern(_count_direct),
    ("Meter", "execute"): Extern(_execute),
    ("DirectMeter", "execute"): Extern(_execute_direct),
    ("Random", "read"): Extern(_random),
    ("Hash", "get_hash"): Extern(_get_hash),
    ("Checksum", "clear"): Extern(_clear),
    ("Checksum", "update"): Extern(_update),
    ("Checksum", "get"): Extern(_get_checksum),
    ("InternetChecksum", "clear"): Extern(_clear),
    ("InternetChecksum", "add"): Extern(_add),
    ("InternetChecksum", "subtract"): Extern(_subtract),
    ("InternetChecksum", "get"): Extern(_get),
    ("InternetChecksum", "get_state"): Extern(_get_state),
    ("InternetChecksum", "set_state"): Extern(_set_state),
    ("Digest", "pack"): Extern(_pack, INGRESS_DEPARSER),
    ("", "psa_clone_i2e"): Extern(_says(_only, "clone", "drop"), INGRESS_DEPARSER),
    ("", "psa_resubmit"): Extern(_says(_unless, "drop", "resubmit"), INGRESS_DEPARSER),
    ("", "psa_normal"): Extern(_says(_neither, "drop", "resubmit"), INGRESS_DEPARSER),
    ("", "psa_clone_e2e"): Extern(_says(_only, "clone", "drop"), EGRESS_DEPARSER),
    ("", "psa_recirculate"): Extern(_recirculates, EGRESS_DEPARSER),
    ("", "assert"): Extern(check_that),
    ("", "assume"): Extern(check_that),
}

INSTANCES = frozenset(owner for owner, _ in EXTERNS if owner) | {
    "ActionProfile", "ActionSelector", "PacketReplicationEngine", "BufferingQueueingEngine"
}  # fmt: skip

COMPILER = ExternCompiler(EXTERNS, INSTANCES, counter_found, meter_found)
