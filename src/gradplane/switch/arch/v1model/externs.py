"""v1model's externs: a row each, with both engines' implementations and where it may be called.

Calls with a later effect (clone, resubmit, ...) are noted on the packet, which the traffic manager
reads. Functions whose names end in `_native` write machine code.
"""

from __future__ import annotations

from typing import NoReturn

from gradplane.switch.arch.extern_table import Extern, Externs
from gradplane.switch.arch.externs import arrays, checksums, messages, numbers
from gradplane.switch.arch.v1model.field_lists import NO_LIST
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Env, Load, Run
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW
from gradplane.switch.source import refuse

COLOUR_CODES = {GREEN: 0, YELLOW: 1, RED: 2}  # V1MODEL_METER_COLOR_*

# -- checksums ----------------------------------------------------------------------------------


def _verify_checksum(with_payload: bool) -> Extern:
    """Return the row of verify_checksum(condition, data, checksum, algorithm)."""

    def interpret(call: Call) -> Run:
        cond, compute, expected = call.arg(0), _computed(call, with_payload), call.arg(2)
        width = call.stmt.args[2].type

        def run(env: Env) -> None:
            if cond(env) and _fit(width, compute(env)) != expected(env):
                env[0].checksum_error = True

        return run

    def compile_native(call: NativeCall) -> None:
        f, code = call.f, call.code
        with f.when(code.value(call.args[0])):
            computed = _computed_native(call, with_payload)
            expected, width = code.value(call.args[2]), scalar_width(call.args[2].type)
            fitted = f.resize(computed, 64, width)
            with f.when(f.compare("ne", f"i{width}", fitted, expected)):
                code.note("checksum_error", 1)

    return Extern(interpret, compile_native, numbers=(2,)).within("vr")


def _update_checksum(with_payload: bool) -> Extern:
    """Return the row of update_checksum(condition, data, checksum, algorithm)."""

    def interpret(call: Call) -> Run:
        cond, compute, store = call.arg(0), _computed(call, with_payload), call.out(2)

        def run(env: Env) -> None:
            if cond(env):
                store(env, compute(env))

        return run

    def compile_native(call: NativeCall) -> None:
        with call.f.when(call.code.value(call.args[0])):
            call.give(_computed_native(call, with_payload), 64, 2)

    return Extern(interpret, compile_native, numbers=(2,)).within("ck")


def _computed(call: Call, with_payload: bool) -> Load:
    data, compute = call.data(1), numbers.algorithm(call, call.name(3))
    if with_payload:
        return lambda env: compute(data(env) + env[0].payload())
    return lambda env: compute(data(env))


def _computed_native(call: NativeCall, with_payload: bool) -> Operand:
    payload = _payload(call.code) if with_payload else None
    return hashed(call.code, call.name(3), FieldList(call.code, [call.args[1]]), payload)


def _payload(code: Statements) -> tuple[Operand, Operand]:
    """Return address and length of the bytes not parsed; a begun byte counts as parsed."""
    f, context = code.f, code.context
    at = f.binary("add", "i64", context.get(f, "%c", "position"), 7)
    start = f.binary("lshr", "i64", at, 3)
    size = f.binary("lshr", "i64", context.get(f, "%c", "bits"), 3)
    return f.add(context.get(f, "%c", "data"), start), f.binary("sub", "i64", size, start)


def _fit(t: Type, number: int) -> int:
    width = getattr(t, "width", 1)
    return number & ((1 << width) - 1)


# -- the packet's path --------------------------------------------------------------------------


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


def _mark_to_drop_native(call: NativeCall) -> None:
    t, code = call.args[0].type, call.code
    assert isinstance(t, Fields), t
    metadata, offsets = code.place(call.target(0)), code.layouts.of(t).offsets
    for name, value in (("egress_spec", code.unit.drop_port), ("mcast_grp", 0)):
        index = _field(call, name)
        code.put(t.fields[index].type, str(value), code.f.add(metadata, offsets[index]))


def _field(call: Call | NativeCall, name: str) -> int:
    t = call.stmt.args[0].type
    index = t.index(name) if isinstance(t, Fields) else None
    if index is None:
        raise refuse(call.stmt.span, f"{t} has no field {name}")
    return index


def _clone(field_list: int | None) -> Extern:
    """Return the row of clone(type, session[, field list at a position]); the last call counts."""

    def interpret(call: Call) -> Run:
        session = call.arg(1)
        number = call.arg(field_list) if field_list is not None else lambda env: NO_LIST

        def run(env: Env) -> None:
            env[0].clone = session(env), number(env)

        return run

    def compile_native(call: NativeCall) -> None:
        call.code.note("clone", call.number(1))
        call.code.note("clone_list", NO_LIST if field_list is None else call.number(field_list))

    return Extern(interpret, compile_native).within("ig", "eg")


def _noted(name: str) -> Extern:
    """Note argument 0, a field list, on the packet. The last call counts."""

    def interpret(call: Call) -> Run:
        field_list = call.arg(0)
        return lambda env: setattr(env[0], name, field_list(env))

    def compile_native(call: NativeCall) -> None:
        call.code.note(name, call.number(0))

    return Extern(interpret, compile_native)


def _without_metadata() -> Extern:
    """Return the row of the older calls; `field_lists` has replaced those with metadata only."""

    def refused(call: Call | NativeCall) -> NoReturn:
        raise refuse(
            call.stmt.span,
            f"{call.stmt.name} can only preserve fields of the metadata parameters",
            "copy what is to be kept to metadata before",
        )

    return Extern(refused, refused)


def _truncate(call: Call) -> Run:
    length = call.arg(0)

    def run(env: Env) -> None:
        packet, most = env[0], length(env)
        packet.truncate = most if packet.truncate is None else min(most, packet.truncate)

    return run


def _truncate_native(call: NativeCall) -> None:
    """Note the least length of all calls; -1, unsigned the greatest number, is no truncation."""
    f, code = call.f, call.code
    args = (("i64", code.context.get(f, "%c", "truncate")), ("i64", call.number(0)))
    code.note("truncate", f.intrinsic("llvm.umin.i64", "i64", *args))


TRUNCATE = Extern(_truncate, _truncate_native)
"""Cut off what leaves behind argument 0 bytes. The smallest of all lengths counts."""

# -- the table ----------------------------------------------------------------------------------

EXTERNS: Externs = {
    ("register", "read"): arrays.register_read(index=1, result=0),
    ("register", "write"): arrays.REGISTER_WRITE,
    ("counter", "count"): arrays.COUNT,
    ("direct_counter", "count"): arrays.NOTHING,  # the table counts each hit, called or not
    ("meter", "execute_meter"): arrays.meter_execute(index=0, result=1, codes=COLOUR_CODES),
    ("direct_meter", "read"): arrays.direct_meter_read(result=0),
    ("Checksum16", "get"): checksums.CHECKSUM16,
    ("", "random"): numbers.RANDOM_FUNCTION,
    ("", "hash"): numbers.HASH_FUNCTION,
    ("", "verify_checksum"): _verify_checksum(with_payload=False),
    ("", "verify_checksum_with_payload"): _verify_checksum(with_payload=True),
    ("", "update_checksum"): _update_checksum(with_payload=False),
    ("", "update_checksum_with_payload"): _update_checksum(with_payload=True),
    ("", "mark_to_drop"): Extern(_mark_to_drop, _mark_to_drop_native).within("p", "ig", "eg"),
    ("", "clone"): _clone(field_list=None),
    ("", "clone_preserving_field_list"): _clone(field_list=2),
    ("", "clone3"): _without_metadata().within("ig", "eg"),
    ("", "resubmit"): _without_metadata().within("ig"),
    ("", "resubmit_preserving_field_list"): _noted("resubmit").within("ig"),
    ("", "recirculate"): _without_metadata().within("eg"),
    ("", "recirculate_preserving_field_list"): _noted("recirculate").within("eg"),
    ("", "truncate"): TRUNCATE,
    ("", "digest"): messages.digest(data=1).within("ig"),
    ("", "assert"): messages.ASSERT,
    ("", "assume"): messages.ASSERT,
    ("", "log_msg"): messages.LOG_MSG,
}
