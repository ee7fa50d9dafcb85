"""PSA's externs: a row each, with both engines' implementations and where it may be called.

Functions whose names end in `_native` write machine code.
"""

from __future__ import annotations

from gradplane.switch.arch.psa import PORT_RECIRCULATE
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Load, Run
from gradplane.switch.ir.types import Fields
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, messages, numbers
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

COLOUR_CODES = {RED: 0, GREEN: 1, YELLOW: 2}  # PSA_MeterColor_t's members in order

# -- the packet's path --------------------------------------------------------------------------


def _field(call: Call, position: int, name: str) -> Load:
    """Return a field of a metadata struct."""
    t, struct = call.stmt.args[position].type, call.arg(position)
    index = t.index(name) if isinstance(t, Fields) else None
    assert index is not None, name
    return lambda env: struct(env)[index]


def _field_native(call: NativeCall, position: int, name: str, width: int) -> Operand:
    """Return a field of a metadata struct in native code, as a number of so many bits."""
    t, code = call.args[position].type, call.code
    assert isinstance(t, Fields), t
    index = t.index(name)
    assert index is not None, name
    address = code.f.add(code.address(call.args[position]), code.layouts.of(t).offsets[index])
    kind = t.fields[index].type
    return code.f.resize(code.load(kind, address), scalar_width(kind), width)


def _clones(call: Call) -> Run:
    clone, store = _field(call, 0, "clone"), call.out(None)
    return lambda env: store(env, clone(env))


def _clones_native(call: NativeCall) -> None:
    call.give(_field_native(call, 0, "clone", 1), 1)


CLONES = Extern(_clones, _clones_native)
"""Test the output metadata for a clone of the packet."""


def _leaves(resubmitted: bool) -> Extern:
    """Test for a packet that is not dropped and is, or is not, resubmitted."""

    def interpret(call: Call) -> Run:
        drop, resubmit = (_field(call, 0, name) for name in ("drop", "resubmit"))
        store = call.out(None)
        return lambda env: store(env, not drop(env) and bool(resubmit(env)) is resubmitted)

    def compile_native(call: NativeCall) -> None:
        f = call.f
        drop, resubmit = (_field_native(call, 0, name, 1) for name in ("drop", "resubmit"))
        wanted = resubmit if resubmitted else f.binary("xor", "i1", resubmit, "true")
        call.give(f.binary("and", "i1", f.binary("xor", "i1", drop, "true"), wanted), 1)

    return Extern(interpret, compile_native)


def _recirculates(call: Call) -> Run:
    drop, port, store = _field(call, 0, "drop"), _field(call, 1, "egress_port"), call.out(None)
    return lambda env: store(env, not drop(env) and port(env) == PORT_RECIRCULATE)


def _recirculates_native(call: NativeCall) -> None:
    f = call.f
    kept = f.binary("xor", "i1", _field_native(call, 0, "drop", 1), "true")
    there = f.compare("eq", "i64", _field_native(call, 1, "egress_port", 64), PORT_RECIRCULATE)
    call.give(f.binary("and", "i1", kept, there), 1)


RECIRCULATES = Extern(_recirculates, _recirculates_native)
"""Test for a packet that is not dropped and leaves to be recirculated."""

# -- the table ----------------------------------------------------------------------------------

INGRESS_DEPARSER, EGRESS_DEPARSER = "ingress.id", "egress.ed"

EXTERNS: Externs = {
    ("Register", "read"): arrays.register_read(index=0),
    ("Register", "write"): arrays.REGISTER_WRITE,
    ("Counter", "count"): arrays.COUNT,
    ("DirectCounter", "count"): arrays.COUNT_DIRECT,
    ("Meter", "execute"): arrays.meter_execute(index=0, before=1, codes=COLOUR_CODES),
    ("DirectMeter", "execute"): arrays.direct_meter_execute(before=0, codes=COLOUR_CODES),
    ("Random", "read"): numbers.RANDOM_READ,
    ("Hash", "get_hash"): numbers.GET_HASH,
    ("Checksum", "clear"): checksums.CLEAR,
    ("Checksum", "update"): checksums.UPDATE,
    ("Checksum", "get"): checksums.GET_CHECKSUM,
    ("InternetChecksum", "clear"): checksums.CLEAR,
    ("InternetChecksum", "add"): checksums.ADD,
    ("InternetChecksum", "subtract"): checksums.SUBTRACT,
    ("InternetChecksum", "get"): checksums.GET,
    ("InternetChecksum", "get_state"): checksums.GET_STATE,
    ("InternetChecksum", "set_state"): checksums.SET_STATE,
    ("Digest", "pack"): messages.digest(data=0).within(INGRESS_DEPARSER),
    ("", "psa_clone_i2e"): CLONES.within(INGRESS_DEPARSER),
    ("", "psa_resubmit"): _leaves(resubmitted=True).within(INGRESS_DEPARSER),
    ("", "psa_normal"): _leaves(resubmitted=False).within(INGRESS_DEPARSER),
    ("", "psa_clone_e2e"): CLONES.within(EGRESS_DEPARSER),
    ("", "psa_recirculate"): RECIRCULATES.within(EGRESS_DEPARSER),
    ("", "assert"): messages.ASSERT,
    ("", "assume"): messages.ASSERT,
}
