"""Hash: the algorithms of HashAlgorithm_t, and CRCs by a polynomial of the program's."""

from __future__ import annotations

from gradplane.switch.arch.extern_table import Extern
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.externs import NativeCall, hashed
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import crc_function
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.hashes import HASHES


def polynomial_of(instance: ir.ExternInstance) -> Crc | None:
    """Return the CRC of a hash that was made with a CRCPolynomial; None without."""
    made = next((a for a in instance.args if isinstance(a, ir.ExternInstance)), None)
    if made is None:
        return None
    width = bit_width(made.type_args[0]) or 0
    mask = (1 << width) - 1
    coefficients, initial, final = (made.number(r) & mask for r in ("coefficients", "init", "xor"))
    return Crc(width, coefficients, initial, final, bool(made.number("reversed")))


def _get(call: Call) -> Run:
    algorithm, store = call.instance.word("algorithm"), call.out(None)
    if algorithm == "random":
        draw = call.state.rng.draw
        return lambda env: store(env, draw())
    compute = polynomial_of(call.instance) or HASHES[algorithm]
    data = call.data(0)
    return lambda env: store(env, compute(data(env)))


def _get_native(call: NativeCall) -> None:
    algorithm = call.instance.word("algorithm")
    if algorithm == "random":
        call.give(native_rng.draw(call.f), 64)
        return
    fields, crc = FieldList(call.code, [call.args[0]]), polynomial_of(call.instance)
    if crc is None:
        call.give(hashed(call.code, algorithm, fields), 64)
        return
    address, size = fields.written()
    function = crc_function(call.code.unit, crc)
    call.give(call.f.call("i64", function, ("ptr", address), ("i64", size)), 64)


GET_HASH = Extern(_get, _get_native, needs_packet=False)
"""Hash<W>(algorithm[, polynomial]).get(data): the lowest W bits."""
