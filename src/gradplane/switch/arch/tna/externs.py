"""TNA's externs: a row each, with both engines' implementations and where it may be called.

Functions whose names end in `_native` write machine code. Register actions are inlined when a
program is compiled (lower/register_actions.py), and others replaced by statements when it is loaded
(desugaring.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradplane.switch.arch.tna import true_accounting
from gradplane.switch.arch.tna.filters import DIRECT_LPF, DIRECT_WRED, LPF, WRED
from gradplane.switch.arch.tna.hashes import GET_HASH
from gradplane.switch.arch.tna.learn_actions import TABLE_DIGEST
from gradplane.switch.arch.tna.parser_choices import MOST, parser_name
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, direct_registers, messages
from gradplane.switch.machine.text_externs import TextBody
from gradplane.switch.runtime.hashes import csum16
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

_HERE = Path(__file__).parent

COLOUR_CODES = {GREEN: 0, YELLOW: 1, RED: 3}  # MeterColor_t


def _result_codes(instance: ir.ExternInstance) -> arrays.Codes:
    """Return the numbers of a meter's results, which its constructor may choose."""
    return {
        GREEN: instance.number("green", COLOUR_CODES[GREEN]),
        YELLOW: instance.number("yellow", COLOUR_CODES[YELLOW]),
        RED: instance.number("red", COLOUR_CODES[RED]),
    }


# -- random numbers -----------------------------------------------------------------------------


_DRAWN = 64  # bits of a drawn number


def _draws(call: ir.CallExtern) -> int:
    """Return how many drawn numbers make the result."""
    return 1 if call.result is None else -(-(bit_width(call.result.type) or 1) // _DRAWN)


def _random(call: Call) -> Run:
    draw, store, draws = call.state.rng.draw, call.out(None), _draws(call.stmt)

    def run(env: Env) -> None:
        value = 0
        for _ in range(draws):
            value = value << _DRAWN | draw()
        store(env, value)

    return run


def _random_native(call: NativeCall) -> None:
    f, draws = call.f, _draws(call.stmt)
    width = _DRAWN * draws
    value: Operand = "0"
    for _ in range(draws):
        drawn = native_rng.draw(f)
        if draws == 1:
            value = drawn
            break
        moved = f.binary("shl", f"i{width}", value, _DRAWN)
        value = f.binary("or", f"i{width}", moved, f.resize(drawn, _DRAWN, width))
    call.give(value, width)


RANDOM = Extern(_random, _random_native, needs_packet=False)
"""Random<W>().get(): a number of W bits."""

# -- checksums in deparsers ---------------------------------------------------------------------


def _zeros_as_ones(call: ir.CallExtern) -> bool:
    last = call.args[-1]
    return len(call.args) > 2 and isinstance(last, ir.Const) and bool(last.value)


def _update(call: Call) -> Run:
    store, data, ones = call.out(None), call.data(1), _zeros_as_ones(call.stmt)

    def run(env: Env) -> None:
        found = csum16(data(env))
        store(env, 0xFFFF if ones and not found else found)

    return run


def _update_native(call: NativeCall) -> None:
    found = hashed(call.code, "csum16", FieldList(call.code, [call.args[1]]))
    if _zeros_as_ones(call.stmt):
        none = call.f.compare("eq", "i64", found, 0)
        found = call.f.select(none, "i64", 0xFFFF, found)
    call.give(found, 64)


CHECKSUM_UPDATE = Extern(_update, _update_native)
"""Checksum().update(data, zeros_as_ones); argument 0 is the state that parsers use."""

# -- what deparsers ask of the traffic manager ---------------------------------------------------


def _emit(name: str, most: int) -> Extern:
    """Return the row of an extern whose bodies are in path.p4: one for calls with the header, which
    is the last of `most` arguments, and one for calls without."""
    whole, alone = TextBody(_HERE, name), TextBody(_HERE, f"{name}_alone")

    def body(args: Sequence[ir.Expr]) -> TextBody:
        return whole if len(args) == most else alone

    return Extern(
        lambda call: body(call.stmt.args).closure(call, call.stmt.args),
        lambda call: body(call.args).write(call, call.args),
        numbers=tuple(range(most - 1)),
    )


# -- the table ----------------------------------------------------------------------------------

INGRESS_PARSERS, EGRESS_PARSERS = (
    tuple(f"pipe{i}.{parser_name(side, n)}" for i in range(4) for n in range(MOST))
    for side in ("ingress_parser", "egress_parser")
)
INGRESS_DEPARSERS = tuple(f"pipe{i}.ingress_deparser" for i in range(4))
EGRESS_DEPARSERS = tuple(f"pipe{i}.egress_deparser" for i in range(4))
_PARSERS = (*INGRESS_PARSERS, *EGRESS_PARSERS)
_DEPARSERS = (*INGRESS_DEPARSERS, *EGRESS_DEPARSERS)

EXTERNS: Externs = {
    ("Register", "read"): arrays.register_read(index=0),
    ("Register", "write"): arrays.REGISTER_WRITE,
    ("Register", "clear"): arrays.REGISTER_CLEAR,
    ("DirectRegister", "read"): direct_registers.READ,
    ("DirectRegister", "write"): direct_registers.WRITE,
    ("DirectRegister", "clear"): direct_registers.CLEAR,
    ("RegisterParam", "read"): arrays.register_read(index=0),
    (ir.HIDDEN_REGISTER, "read"): arrays.register_read(index=0),
    (ir.HIDDEN_REGISTER, "write"): arrays.REGISTER_WRITE,
    ("Counter", "count"): true_accounting.accounted(
        arrays.count(adjust=1), true_accounting.correction, true_accounting.cell
    ),
    ("DirectCounter", "count"): true_accounting.accounted(
        arrays.count_direct(adjust=0),
        true_accounting.correction_of_entry,
        true_accounting.cell_of_entry,
    ),
    ("Meter", "execute"): arrays.meter_execute(
        index=0, codes=COLOUR_CODES, before=1, adjust=2, own_codes=_result_codes
    ),
    ("DirectMeter", "execute"): arrays.direct_meter_execute(
        codes=COLOUR_CODES, before=0, adjust=1, own_codes=_result_codes
    ),
    ("Lpf", "execute"): LPF,
    ("Wred", "execute"): WRED,
    ("DirectLpf", "execute"): DIRECT_LPF,
    ("DirectWred", "execute"): DIRECT_WRED,
    ("Random", "get"): RANDOM,
    ("", ir.TABLE_DIGEST): TABLE_DIGEST,
    ("Hash", "get"): GET_HASH,
    ("Checksum", "add"): checksums.ADD.within(*_PARSERS),
    ("Checksum", "subtract"): checksums.SUBTRACT.within(*_PARSERS),
    ("Checksum", "update"): CHECKSUM_UPDATE.within(*_DEPARSERS),
    ("Digest", "pack"): messages.digest(data=0).within(*INGRESS_DEPARSERS),
    ("Pktgen", "emit"): messages.digest(data=0).within(*INGRESS_DEPARSERS),
    ("Mirror", "emit"): _emit("mirror_emit", 2).within(*_DEPARSERS),
    ("Resubmit", "emit"): _emit("resubmit_emit", 1).within(*INGRESS_DEPARSERS),
}
