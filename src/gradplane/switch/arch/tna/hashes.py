"""Hash: the algorithms of HashAlgorithm_t, and CRCs by a polynomial of the program's."""

from __future__ import annotations

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.externs import NativeCall, hashed_by
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.dynamic_hashes import filled


def _get(call: Call) -> Run:
    algorithm, store = call.instance.word("algorithm"), call.out(None)
    if algorithm == "random":
        draw = call.state.rng.draw
        return lambda env: store(env, draw())
    data = call.bits_of(filled(call.instance, [call.stmt.args[0]]))
    compute = call.state.hashes[call.instance.name].compute
    return lambda env: store(env, compute(data(env)))


def _get_native(call: NativeCall) -> None:
    algorithm, f = call.instance.word("algorithm"), call.f
    if algorithm == "random":
        call.give(native_rng.draw(f), 64)
        return
    found = hashed_by(
        call.code, call.instance, FieldList(call.code, filled(call.instance, [call.args[0]]))
    )
    call.give(found, 64)


GET_HASH = Extern(_get, _get_native, needs_packet=False)
"""Hash<W>(algorithm[, polynomial]).get(data): the lowest W bits. The control plane may replace the
algorithm (runtime/dynamic_hashes.py)."""
