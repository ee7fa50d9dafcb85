"""v1model's externs: a row each, with both engines' implementations and where it may be called.

Those that path.p4 has the bodies of have no code here: their calls leave notes for the path.
Functions whose names end in `_native` write machine code.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.ir.types import Type
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, messages, numbers
from gradplane.switch.machine.text_externs import TextBody
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW
from gradplane.switch.source import refuse

COLOUR_CODES = {GREEN: 0, YELLOW: 1, RED: 2}  # V1MODEL_METER_COLOR_*

_HERE = Path(__file__).parent


def _text(name: str) -> Extern:
    """Return the row of an extern whose body is in path.p4."""
    return TextBody(_HERE, name).extern()


_DIFFERS = TextBody(_HERE, "checksum_differs")

# -- checksums ----------------------------------------------------------------------------------


def _verify_checksum(with_payload: bool) -> Extern:
    """Return the row of verify_checksum(condition, data, checksum, algorithm)."""

    def interpret(call: Call) -> Run:
        cond, compute, expected = call.arg(0), _computed(call, with_payload), call.arg(2)
        width, differs = call.stmt.args[2].type, _DIFFERS.closure(call)

        def run(env: Env) -> None:
            if cond(env) and _fit(width, compute(env)) != expected(env):
                differs(env)

        return run

    def compile_native(call: NativeCall) -> None:
        f, code = call.f, call.code
        with f.when(code.value(call.args[0])):
            computed = _computed_native(call, with_payload)
            expected, width = code.value(call.args[2]), scalar_width(call.args[2].type)
            fitted = f.resize(computed, 64, width)
            with f.when(f.compare("ne", f"i{width}", fitted, expected)):
                _DIFFERS.write(call)

    return Extern(interpret, compile_native, numbers=(2,), bodies=(_DIFFERS.name,)).within("vr")


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
    f = code.f
    at = f.binary("add", "i64", code.noted("position"), 7)
    start = f.binary("lshr", "i64", at, 3)
    size = f.binary("lshr", "i64", code.noted("bits"), 3)
    return f.add(code.noted("data"), start), f.binary("sub", "i64", size, start)


def _fit(t: Type, number: int) -> int:
    width = getattr(t, "width", 1)
    return number & ((1 << width) - 1)


# -- the packet's path --------------------------------------------------------------------------


def _without_metadata() -> Extern:
    """Return the row of the older calls; `field_lists` has replaced those with metadata only."""

    def refused(call: Call | NativeCall) -> NoReturn:
        raise refuse(
            call.stmt.span,
            f"{call.stmt.name} can only preserve fields of the metadata parameters",
            "copy what is to be kept to metadata before",
        )

    return Extern(refused, refused)


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
    ("", "mark_to_drop"): _text("mark_to_drop").within("p", "ig", "eg"),
    ("", "clone"): _text("clone").within("ig", "eg"),
    ("", "clone_preserving_field_list"): _text("clone_preserving_field_list").within("ig", "eg"),
    ("", "clone3"): _without_metadata().within("ig", "eg"),
    ("", "resubmit"): _without_metadata().within("ig"),
    ("", "resubmit_preserving_field_list"): _text("resubmit_preserving_field_list").within("ig"),
    ("", "recirculate"): _without_metadata().within("eg"),
    ("", "recirculate_preserving_field_list"): _text("recirculate_preserving_field_list").within(
        "eg"
    ),
    ("", "truncate"): _text("truncate"),
    ("", "digest"): messages.digest(data=1).within("ig"),
    ("", "assert"): messages.ASSERT,
    ("", "assume"): messages.ASSERT,
    ("", "log_msg"): messages.LOG_MSG,
}
