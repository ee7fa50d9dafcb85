"""v1model's externs as native code: one row each, as in gradplane.switch.arch.v1externs."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.arch.fieldlists import NO_LIST
from gradplane.switch.ir.types import Fields
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.expressions import is_signed
from gradplane.switch.jit.externs import (
    Builders,
    Call,
    check_that,
    count,
    custom_hash,
    hashed,
    meter_colour,
    nothing,
    register_read,
    register_write,
    scaled_hash,
    tell_value,
)
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import scalar_width

# -- arrays -------------------------------------------------------------------------------------


def _register_read(call: Call) -> None:
    register_read(call, call.target(0), 1)


def _execute_meter(call: Call) -> None:
    call.code.store_number(call.target(1), meter_colour(call, 0), 32)


def _read_direct_meter(call: Call) -> None:
    offset = call.code.context.direct[call.instance.name]
    colour = call.f.load("i32", call.f.add("%c", offset), 4)
    call.code.store_number(call.target(0), colour, 32)


# -- numbers -------------------------------------------------------------------------------------


def _random(call: Call) -> None:
    low, high = call.args[1], call.args[2]
    width = scalar_width(low.type)
    between = native_rng.between(call.code, width, is_signed(low.type))
    kind = f"i{width}"
    args = ((kind, call.code.value(low)), (kind, call.code.value(high)))
    call.code.store_number(call.target(0), call.f.call(kind, between, *args), width)


def _hash(call: Call) -> None:
    name = call.name(1)
    if name == "random":
        found = native_rng.draw(call.f)
    else:
        fields = FieldList(call.code, [call.args[3]])
        crc = call.externs.crcs.get(call.stmt)
        found = hashed(call.code, name, fields) if crc is None else custom_hash(call, crc, fields)
    value, width = scaled_hash(call, found, call.args[2], call.args[4])
    call.code.store_number(call.target(0), value, width)


def _verify_checksum(call: Call) -> None:
    _verify(call, False)


def _verify_with_payload(call: Call) -> None:
    _verify(call, True)


def _verify(call: Call, with_payload: bool) -> None:
    f, code = call.f, call.code
    with f.when(code.value(call.args[0])):
        computed = _checksum(call, with_payload)
        expected, width = code.value(call.args[2]), scalar_width(call.args[2].type)
        fitted = f.resize(computed, 64, width)
        with f.when(f.compare("ne", f"i{width}", fitted, expected)):
            code.note("checksum_error", 1)


def _update_checksum(call: Call) -> None:
    _update(call, False)


def _update_with_payload(call: Call) -> None:
    _update(call, True)


def _update(call: Call, with_payload: bool) -> None:
    with call.f.when(call.code.value(call.args[0])):
        call.code.store_number(call.target(2), _checksum(call, with_payload), 64)


def _checksum(call: Call, with_payload: bool) -> Operand:
    payload = payload_of(call.code) if with_payload else None
    fields = FieldList(call.code, [call.args[1]])
    return hashed(call.code, call.name(3), fields, payload)


def payload_of(code: Statements) -> tuple[Operand, Operand]:
    """Address and length of the bytes that the parser left; a begun byte counts as parsed."""
    f, context = code.f, code.context
    at = f.binary("add", "i64", context.get(f, "%c", "position"), 7)
    start = f.binary("lshr", "i64", at, 3)
    size = f.binary("lshr", "i64", context.get(f, "%c", "bits"), 3)
    return f.add(context.get(f, "%c", "data"), start), f.binary("sub", "i64", size, start)


def _checksum16(call: Call) -> None:
    call.give(hashed(call.code, "csum16", FieldList(call.code, [call.args[0]])), 64)


# -- the packet's way ---------------------------------------------------------------------------


def _mark_to_drop(call: Call) -> None:
    t, code = call.args[0].type, call.code
    assert isinstance(t, Fields), t
    metadata, offsets = code.place(call.target(0)), code.layouts.of(t).offsets
    for name, value in (("egress_spec", code.unit.drop_port), ("mcast_grp", 0)):
        index = t.index(name)
        assert index is not None, name
        code.put(t.fields[index].type, str(value), code.f.add(metadata, offsets[index]))


def _clone(call: Call) -> None:
    call.code.note("clone", call.number(1))
    call.code.note("clone_list", NO_LIST)


def _clone_preserving(call: Call) -> None:
    call.code.note("clone", call.number(1))
    call.code.note("clone_list", call.number(2))


def _noted(name: str) -> Callable[[Call], None]:
    def note(call: Call) -> None:
        call.code.note(name, call.number(0))

    return note


def _truncate(call: Call) -> None:
    """The smallest of all lengths counts; "not truncated" is -1, the greatest number unsigned."""
    f, code = call.f, call.code
    args = (("i64", code.context.get(f, "%c", "truncate")), ("i64", call.number(0)))
    code.note("truncate", f.intrinsic("llvm.umin.i64", "i64", *args))


# -- messages ------------------------------------------------------------------------------------


def _digest(call: Call) -> None:
    """Told when ingress is over."""
    tell_value(call, "digests", "digest", str(call.args[1].type), 1)


def _log_msg(call: Call) -> None:
    f = call.f
    logging = f.word("logging", "i64")
    with f.when(f.compare("ne", "i64", logging, 0)):
        position = 1 if len(call.args) > 1 else None
        tell_value(call, "messages", "log", call.name(0), position)


EXTERNS: Builders = {
    ("register", "read"): _register_read,
    ("register", "write"): register_write,
    ("counter", "count"): count,
    ("direct_counter", "count"): nothing,  # the table counts each hit, called or not
    ("meter", "execute_meter"): _execute_meter,
    ("direct_meter", "read"): _read_direct_meter,
    ("Checksum16", "get"): _checksum16,
    ("", "random"): _random,
    ("", "hash"): _hash,
    ("", "verify_checksum"): _verify_checksum,
    ("", "verify_checksum_with_payload"): _verify_with_payload,
    ("", "update_checksum"): _update_checksum,
    ("", "update_checksum_with_payload"): _update_with_payload,
    ("", "mark_to_drop"): _mark_to_drop,
    ("", "clone"): _clone,
    ("", "clone_preserving_field_list"): _clone_preserving,
    ("", "resubmit_preserving_field_list"): _noted("resubmit"),
    ("", "recirculate_preserving_field_list"): _noted("recirculate"),
    ("", "truncate"): _truncate,
    ("", "digest"): _digest,
    ("", "assert"): check_that,
    ("", "assume"): check_that,
    ("", "log_msg"): _log_msg,
}
