"""PSA's externs as native code: one row each, as in gradplane.switch.arch.psaexterns."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.arch.psaexterns import COLOUR_NAMES, COLOURS
from gradplane.switch.arch.psapacket import PORT_RECIRCULATE
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.count_layout import count as count_cells
from gradplane.switch.jit.expressions import is_signed
from gradplane.switch.jit.externs import (
    Builders,
    Call,
    check_that,
    count,
    hashed,
    length,
    meter_colour,
    register_read,
    register_write,
    scaled_hash,
    tell_value,
)
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.hash_algorithms import ones_sum, step_function, words_sum
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.runtime.meters import GREEN

# -- counters, meters, registers ----------------------------------------------------------------


def _register_read(call: Call) -> None:
    register_read(call, call.stmt.result, 0)


def _found(call: Call) -> Operand:
    """Address of the cells of the direct counter or meter that the table found."""
    return call.f.load("ptr", call.f.add("%c", call.code.context.direct[call.instance.name]), 8)


def _count_direct(call: Call) -> None:
    count_cells(call.f, _found(call), length(call))


def _execute(call: Call) -> None:
    _give_colour(call, meter_colour(call, 0, _before(call, 1)))


def _execute_direct(call: Call) -> None:
    by_packets, before = call.instance.args[0] == "PACKETS", _before(call, 0)
    unit, cell = call.code.unit, _found(call)
    _give_colour(call, execute_meter(unit, call.f, cell, length(call), by_packets, before))


def _before(call: Call, position: int) -> Operand:
    """An optional argument: the colour before (i32), as meters number it."""
    if len(call.args) <= position:
        return str(GREEN)
    arg = call.args[position]
    if isinstance(arg, ir.Const) and isinstance(arg.value, str):
        return str(COLOURS[COLOUR_NAMES.index(arg.value)])
    return _renumbered(call, call.code.number(arg, 32), len(COLOURS) - 1)


def _give_colour(call: Call, colour: Operand) -> None:
    call.give(_renumbered(call, colour, 1), 32)


def _renumbered(call: Call, number: Operand, by: int) -> Operand:
    """PSA's members RED, GREEN, YELLOW are the meters' GREEN, YELLOW, RED, one further."""
    moved = call.f.binary("add", "i32", number, by)
    return call.f.binary("urem", "i32", moved, len(COLOURS))


# -- numbers ------------------------------------------------------------------------------------


def _random(call: Call) -> None:
    t = call.instance.type_args[0]
    width, (low, high) = scalar_width(t), call.instance.args
    kind, between = f"i{width}", native_rng.between(call.code, width, is_signed(t))
    call.give(call.f.call(kind, between, (kind, str(low)), (kind, str(high))), width)


def _get_hash(call: Call) -> None:
    """get_hash(data), or get_hash(base, data, max)."""
    with_bounds = len(call.args) > 1
    fields = FieldList(call.code, [call.args[int(with_bounds)]])
    found = hashed(call.code, _algorithm(call), fields)
    if with_bounds:
        call.give(*scaled_hash(call, found, call.args[0], call.args[2]))
    else:
        call.give(found, 64)


def _algorithm(call: Call) -> str:
    return str(call.instance.args[0]).lower()


def _clear(call: Call) -> None:
    call.code.store_number(call.target(0), "0", 64)


def _update(call: Call) -> None:
    name = _algorithm(call)
    if name == "ones_complement16":
        _add(call)
        return
    f, state = call.f, call.number(0)
    address, size = FieldList(call.code, [call.args[1]]).written()
    step = step_function(call.code.unit, name)
    args = (("ptr", address), ("i64", size), ("i64", state))
    call.code.store_number(call.target(0), f.call("i64", step, *args), 64)


def _add(call: Call) -> None:
    _take(call, _words(call)[0])


def _subtract(call: Call) -> None:
    """The sum of the words' complements."""
    total, words = _words(call)
    ones = call.f.binary("mul", "i64", words, 0xFFFF)
    _take(call, call.f.binary("sub", "i64", ones, total))


def _take(call: Call, total: Operand) -> None:
    """Adds a number to the sum that is the state."""
    whole = call.f.binary("add", "i64", call.number(0), total)
    call.code.store_number(call.target(0), ones_sum(call.f, whole), 64)


def _words(call: Call) -> tuple[Operand, Operand]:
    """The exact sum of the data's 16-bit words, and how many they are (i64)."""
    f, fields = call.f, FieldList(call.code, [call.args[1]])
    if fields.fixed:
        count: Operand = "0"
        for group in fields.groups:
            count = f.select(group.valid, "i64", -(-group.bits // 16), 0)
        return fields.sum16(exact=True), count
    address, size = fields.written()
    total = f.call("i64", words_sum(call.code.unit, exact=True), ("ptr", address), ("i64", size))
    return total, f.binary("lshr", "i64", f.binary("add", "i64", size, 1), 1)


def _get_checksum(call: Call) -> None:
    if _algorithm(call) == "ones_complement16":
        _get(call)
    else:
        call.give(call.number(0), 64)


def _get(call: Call) -> None:
    call.give(call.f.binary("xor", "i64", call.number(0), 0xFFFF), 64)


def _get_state(call: Call) -> None:
    call.give(call.number(0), 64)


def _set_state(call: Call) -> None:
    call.code.store_number(call.target(0), call.number(1), 64)


# -- the packet's way ---------------------------------------------------------------------------


def _field(call: Call, position: int, name: str, width: int) -> Operand:
    """A field of a metadata struct, as a number of so many bits."""
    t, code = call.args[position].type, call.code
    assert isinstance(t, Fields), t
    index = t.index(name)
    assert index is not None, name
    address = code.f.add(code.address(call.args[position]), code.layouts.of(t).offsets[index])
    kind = t.fields[index].type
    return code.f.resize(code.load(kind, address), scalar_width(kind), width)


def _clones(call: Call) -> None:
    call.give(_field(call, 0, "clone", 1), 1)


def _says(resubmit: bool) -> Callable[[Call], None]:
    """Whether the packet, if it is not dropped, is resubmitted or not."""

    def build(call: Call) -> None:
        f = call.f
        drop, other = (_field(call, 0, name, 1) for name in ("drop", "resubmit"))
        wanted = other if resubmit else f.binary("xor", "i1", other, "true")
        call.give(f.binary("and", "i1", f.binary("xor", "i1", drop, "true"), wanted), 1)

    return build


def _recirculates(call: Call) -> None:
    f = call.f
    kept = f.binary("xor", "i1", _field(call, 0, "drop", 1), "true")
    there = f.compare("eq", "i64", _field(call, 1, "egress_port", 64), PORT_RECIRCULATE)
    call.give(f.binary("and", "i1", kept, there), 1)


def _pack(call: Call) -> None:
    """Told when ingress is over."""
    tell_value(call, "digests", "digest", call.instance.name, 0)


EXTERNS: Builders = {
    ("Register", "read"): _register_read,
    ("Register", "write"): register_write,
    ("Counter", "count"): count,
    ("DirectCounter", "count"): _count_direct,
    ("Meter", "execute"): _execute,
    ("DirectMeter", "execute"): _execute_direct,
    ("Random", "read"): _random,
    ("Hash", "get_hash"): _get_hash,
    ("Checksum", "clear"): _clear,
    ("Checksum", "update"): _update,
    ("Checksum", "get"): _get_checksum,
    ("InternetChecksum", "clear"): _clear,
    ("InternetChecksum", "add"): _add,
    ("InternetChecksum", "subtract"): _subtract,
    ("InternetChecksum", "get"): _get,
    ("InternetChecksum", "get_state"): _get_state,
    ("InternetChecksum", "set_state"): _set_state,
    ("Digest", "pack"): _pack,
    ("", "psa_clone_i2e"): _clones,
    ("", "psa_resubmit"): _says(True),
    ("", "psa_normal"): _says(False),
    ("", "psa_clone_e2e"): _clones,
    ("", "psa_recirculate"): _recirculates,
    ("", "assert"): check_that,
    ("", "assume"): check_that,
}
