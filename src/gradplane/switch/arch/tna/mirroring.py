"""Mirror and Resubmit: what a deparser notes for the traffic manager."""

from __future__ import annotations

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.machine.extern_table import Extern

MIRROR_SESSION, MIRROR_SIZE, RESUBMIT_SIZE = "mirror session", "mirror size", "resubmit size"
"""Notes of the packet; NONE where nothing was called. Sizes are those of headers, in bytes."""
MIRROR_HEADER, RESUBMIT_HEADER = "mirror header", "resubmit header"
"""State words with the address of the headers' memory."""


def _emit_mirror(call: Call) -> Run:
    session = call.bits(0)
    header = call.data(1) if len(call.stmt.args) > 1 else None

    def run(env: Env) -> None:
        env[0].mirror = (session(env), b"" if header is None else header(env))

    return run


def _emit_mirror_native(call: NativeCall) -> None:
    context = call.code.context
    context.set(call.f, "%c", MIRROR_SESSION, call.number(0))
    context.set(call.f, "%c", MIRROR_SIZE, _kept(call, 1, MIRROR_HEADER))


MIRROR = Extern(_emit_mirror, _emit_mirror_native, numbers=(0,))
"""Mirror(type).emit(session[, header])"""


def _resubmit(call: Call) -> Run:
    header = call.data(0) if call.stmt.args else None

    def run(env: Env) -> None:
        env[0].resubmit = b"" if header is None else header(env)

    return run


def _resubmit_native(call: NativeCall) -> None:
    call.code.context.set(call.f, "%c", RESUBMIT_SIZE, _kept(call, 0, RESUBMIT_HEADER))


RESUBMIT = Extern(_resubmit, _resubmit_native)
"""Resubmit(type).emit([header])"""


def _kept(call: NativeCall, position: int, word: str) -> Operand:
    """Copy a header to its memory; return its bytes."""
    if len(call.args) <= position:
        return "0"
    address, size = FieldList(call.code, [call.args[position]]).written()
    call.f.copy(call.f.word(word), address, size)
    return size
