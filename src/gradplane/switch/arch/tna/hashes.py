"""Hash: the algorithms of HashAlgorithm_t, and CRCs by a polynomial of the program's."""

from __future__ import annotations

from gradplane.switch.arch.extern_table import Extern
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Run
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import crc_function, dynamic_crc, hash_word
from gradplane.switch.runtime.dynamic_hashes import USED, polynomial_of
from gradplane.switch.runtime.hashes import HASHES


def _get(call: Call) -> Run:
    algorithm, store = call.instance.word("algorithm"), call.out(None)
    if algorithm == "random":
        draw = call.state.rng.draw
        return lambda env: store(env, draw())
    compute = polynomial_of(call.instance) or HASHES[algorithm]
    data, dynamic = call.data(0), call.state.hashes[call.instance.name]
    return lambda env: store(env, (dynamic.crc or compute)(data(env)))


def _get_native(call: NativeCall) -> None:
    algorithm, f = call.instance.word("algorithm"), call.f
    if algorithm == "random":
        call.give(native_rng.draw(f), 64)
        return
    fields, crc = FieldList(call.code, [call.args[0]]), polynomial_of(call.instance)
    memory, result = f.word(hash_word(call.instance.name)), f.variable("i64", 0)
    used = f.load("i64", f.item(memory, "i64", USED), 8)
    replaced = f.compare("ne", "i64", used, 0)
    with f.when(replaced):
        address, size = fields.written()
        args = (("ptr", address), ("i64", size), ("ptr", memory))
        result.set(f.call("i64", dynamic_crc(call.code.unit), *args))
    with f.unless(replaced):
        if crc is None:
            result.set(hashed(call.code, algorithm, fields))
        else:
            address, size = fields.written()
            function = crc_function(call.code.unit, crc)
            result.set(f.call("i64", function, ("ptr", address), ("i64", size)))
    call.give(result.get(), 64)


GET_HASH = Extern(_get, _get_native, needs_packet=False)
"""Hash<W>(algorithm[, polynomial]).get(data): the lowest W bits. The control plane may replace the
algorithm (runtime/dynamic_hashes.py)."""
