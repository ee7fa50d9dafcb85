"""Registers, counters and meters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.expressions import is_signed
from gradplane.switch.jit.externs import (
    REGISTERS,
    NativeCall,
    adjustment_word,
    counter_word,
    meter_word,
)
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.meters import count as write_count
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.value_layout import container, scalar_width
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.byte_adjustments import BYTES, SET
from gradplane.switch.runtime.meters import CELL_WORDS, GREEN, RED, YELLOW

Codes = Mapping[int, int]
"""An architecture's numbers of the meters' colours GREEN, YELLOW and RED."""

CodesOf = Callable[[ir.ExternInstance], Codes]

COLOURS = {"GREEN": GREEN, "YELLOW": YELLOW, "RED": RED}  # by the name of an enum's member


def _nothing(call: Call) -> Run:
    return lambda env: None


def _nothing_native(call: NativeCall) -> None:
    pass


NOTHING = Extern(_nothing, _nothing_native)
"""A call without effect: of a direct counter that counts each lookup, called or not."""


# -- registers ----------------------------------------------------------------------------------


def register_read(index: int, result: int | None = None) -> Extern:
    """Give the cell at argument `index`, 0 outside the register, to argument `result`; None: as the
    return value."""
    return Extern(
        partial(_read, index=index, result=result),
        partial(_read_native, index=index, result=result),
        numbers=(index,),
        needs_packet=False,
    )


def _read(call: Call, index: int, result: int | None) -> Run:
    name = call.instance.name
    cells, size = call.state.register_cells[name], call.state.registers[name].size
    at, store = call.arg(index), call.out(result)

    def run(env: Env) -> None:
        number = at(env)
        store(env, cells[number] if 0 <= number < size else 0)

    return run


def _read_native(call: NativeCall, index: int, result: int | None) -> None:
    t, f = call.instance.type_args[0], call.f
    inside, at = call.index(index, call.instance.number("size", 1))
    if result is None and call.stmt.result is None:
        return
    width = scalar_width(t)
    value = call.code.load(t, _cell(call, inside, at), _region(call))
    call.give(f.select(inside, f"i{width}", value, 0), width, result)


def _cell(call: NativeCall, inside: Operand, index: Operand) -> Operand:
    """Return the address of a register's cell; of the spare one behind the last if the index is not
    `inside`, which is faster than a branch."""
    f, place = call.f, call.externs.register_places[call.instance.name]
    safe = f.select(inside, "i64", index, call.instance.number("size", 1))
    memory = f.word(REGISTERS, fixed=not call.externs.pipes_have_registers)
    row = f.add(memory, f.binary("mul", "i64", safe, place.step))
    return f.add(row, place.offset)


def _region(call: NativeCall) -> str:
    """Return the memory of a register and those whose cells lie beside its own, for
    Function.load."""
    return f"registers {call.externs.register_places[call.instance.name].row}"


def _write(call: Call) -> Run:
    name = call.instance.name
    cells, size = call.state.register_cells[name], call.state.registers[name].size
    index, value = call.arg(0), call.arg(1)

    def run(env: Env) -> None:
        at = index(env)
        if 0 <= at < size:
            cells[at] = value(env)

    return run


def _write_native(call: NativeCall) -> None:
    inside, index = call.index(0, call.instance.number("size"))
    put_cell(call, call.code.value(call.args[1]), _cell(call, inside, index), _region(call))


def put_cell(call: NativeCall, value: Operand, cell: Operand, region: str) -> None:
    """Write a register's cell at an address; region: as in Function.load."""
    t = call.instance.type_args[0]
    width = scalar_width(t)
    if is_signed(t) and width <= 64:  # NumPy's cells are sign-extended
        bits = container(width)
        extended = call.f.resize(value, width, bits, True)
        call.f.store(f"i{bits}", extended, cell, bits // 8, region)
    else:
        call.code.put(t, value, cell, region)


REGISTER_WRITE = Extern(_write, _write_native, numbers=(0,), needs_packet=False)
"""Set the cell at argument 0 to argument 1; outside the register, do nothing."""


def _clear(call: Call) -> Run:
    name, value = call.instance.name, call.arg(0)
    cells, size = call.state.register_cells[name], call.state.registers[name].size

    def run(env: Env) -> None:
        new = value(env)
        for at in range(size):
            cells[at] = new

    return run


def _clear_native(call: NativeCall) -> None:
    value, region = call.code.value(call.args[0]), _region(call)
    with call.f.count(call.instance.number("size")) as index:
        put_cell(call, value, _cell(call, "true", index), region)


REGISTER_CLEAR = Extern(_clear, _clear_native, needs_packet=False)
"""Set all cells to argument 0."""


# -- counters -----------------------------------------------------------------------------------


def _length(call: Call, adjust: int | None, given: int | None = None) -> Load:
    """Return the bytes of argument `given` if the call has it; else the packet's, less argument
    `adjust` if there is one, but at least none."""
    if given is not None and len(call.stmt.args) > given:
        return call.arg(given)
    if adjust is None:
        return lambda env: env[0].length
    less = call.arg(adjust)
    return lambda env: max(env[0].length - less(env), 0)


def _length_native(call: NativeCall, adjust: int | None, given: int | None = None) -> Operand:
    if given is not None and len(call.args) > given:
        return call.number(given)
    size = call.length()
    if adjust is None:
        return size
    return call.f.intrinsic("llvm.usub.sat.i64", "i64", ("i64", size), ("i64", call.number(adjust)))


def count(adjust: int | None = None, given: int | None = None) -> Extern:
    """Count the packet in the cell at argument 0; `adjust`: the argument with bytes to leave
    out; `given`: the one that a call may have, with the bytes to count."""
    return Extern(
        partial(_count, adjust=adjust, given=given),
        partial(_count_native, adjust=adjust, given=given),
        (0,),
    )


def _count(call: Call, adjust: int | None, given: int | None) -> Run:
    counter, index = call.state.counters[call.instance.name], call.arg(0)
    length = _length(call, adjust, given)
    return lambda env: counter.add(index(env), length(env))


def _count_native(call: NativeCall, adjust: int | None, given: int | None) -> None:
    f, name = call.f, call.instance.name
    length = _length_native(call, adjust, given)
    inside, index = call.index(0, call.instance.number("size"))
    with f.when(inside):
        for part, amount in (("packets", "1"), ("bytes", length)):
            cell = f.item(f.word(counter_word(name, part)), "i64", index)
            f.store("i64", f.binary("add", "i64", f.load("i64", cell, 8), amount), cell, 8)


COUNT = count()


def count_direct(adjust: int | None = None, given: int | None = None) -> Extern:
    """Count the packet in the direct counter that the table found (direct_resources.ON_CALL);
    `adjust` and `given` as in `count`."""
    return Extern(
        partial(_count_direct, adjust=adjust, given=given),
        partial(_count_direct_native, adjust=adjust, given=given),
    )


def _count_direct(call: Call, adjust: int | None, given: int | None) -> Run:
    name, length = call.instance.name, _length(call, adjust, given)
    return lambda env: env[0].direct[name].add(length(env))


def _count_direct_native(call: NativeCall, adjust: int | None, given: int | None) -> None:
    write_count(call.f, found_cells(call), _length_native(call, adjust, given))


COUNT_DIRECT = count_direct()


def found_cells(call: NativeCall) -> Operand:
    """Return the address of the cells of the direct resource that the table found."""
    return call.f.load("ptr", call.code.found(call.instance), 8)


# -- meters -------------------------------------------------------------------------------------


def _measured(call: Call, adjust: int | None) -> Load:
    """Return the bytes that a meter measures: `_length`, or with the control plane's adjustment."""
    length = _length(call, adjust)
    if adjust is None:
        return length
    own = call.state.byte_adjustments[call.instance.name]

    def load(env: Env) -> int:
        more = own.bytes
        return int(length(env) if more is None else max(env[0].length + more, 0))

    return load


def _measured_native(call: NativeCall, adjust: int | None) -> Operand:
    length = _length_native(call, adjust)
    if adjust is None:
        return length
    f, memory = call.f, call.f.word(adjustment_word(call.instance.name))
    used = f.load("i64", f.item(memory, "i64", SET), 8)
    more = f.binary("add", "i64", call.length(), f.load("i64", f.item(memory, "i64", BYTES), 8))
    positive = f.intrinsic("llvm.smax.i64", "i64", ("i64", more), ("i64", 0))
    return f.select(f.compare("ne", "i64", used, 0), "i64", positive, length)


class _Places(NamedTuple):
    """The numbers of a meter's colours, and the positions of its optional arguments."""

    codes: Codes
    before: int | None
    adjust: int | None
    own_codes: CodesOf | None

    def results(self, instance: ir.ExternInstance) -> Codes:
        return self.codes if self.own_codes is None else self.own_codes(instance)


def meter_execute(
    index: int,
    codes: Codes,
    result: int | None = None,
    before: int | None = None,
    adjust: int | None = None,
    own_codes: CodesOf | None = None,
) -> Extern:
    """Give the packet's colour by the cell at argument `index` to argument `result`; None: as the
    return value. `before`: the position of an optional argument, the colour it had. `adjust`: as in
    `count`. own_codes: the numbers of a meter's results, if each has its own."""
    places = _Places(codes, before, adjust, own_codes)
    return Extern(
        partial(_execute, index=index, result=result, places=places),
        partial(_execute_native, index=index, result=result, places=places),
        numbers=(index,) if result is None else (index, result),
    )


def _execute(call: Call, index: int, result: int | None, places: _Places) -> Run:
    meter, at, store = call.state.meters[call.instance.name], call.arg(index), call.out(result)
    had, clock = _before(call, places.before, places.codes), call.state.clock
    length, codes = _measured(call, places.adjust), places.results(call.instance)

    def run(env: Env) -> None:
        colour = meter.execute(at(env), clock(), length(env), had(env))
        store(env, codes[colour])

    return run


def _execute_native(call: NativeCall, index: int, result: int | None, places: _Places) -> None:
    f, had = call.f, _before_native(call, places.before, places.codes)
    length = _measured_native(call, places.adjust)
    inside, at = call.index(index, call.instance.number("size"))
    colour = f.variable("i32", GREEN)
    with f.when(inside):
        word = f.binary("mul", "i64", at, len(CELL_WORDS))
        cell = f.item(f.word(meter_word(call.instance.name)), "i64", word)
        by_packets = call.instance.word("unit") == "packets"
        colour.set(execute_meter(call.code.unit, f, cell, length, by_packets, had))
    call.give(_coded(call, colour.get(), places.results(call.instance)), 32, result)


def direct_meter_read(result: int) -> Extern:
    """Give the colour that the direct meter gave at the lookup (direct_resources.AUTOMATIC)."""
    return Extern(partial(_read_direct, result=result), partial(_read_direct_native, result=result))


def _read_direct(call: Call, result: int) -> Run:
    store, name = call.out(result), call.instance.name
    return lambda env: store(env, env[0].direct.get(name, GREEN))


def _read_direct_native(call: NativeCall, result: int) -> None:
    colour = call.f.load("i32", call.code.found(call.instance), 4)
    call.give(colour, 32, result)


def direct_meter_execute(
    codes: Codes,
    before: int | None = None,
    adjust: int | None = None,
    own_codes: CodesOf | None = None,
) -> Extern:
    """Return the packet's colour by the direct meter that the table found
    (direct_resources.ON_CALL); the other arguments as in `meter_execute`."""
    places = _Places(codes, before, adjust, own_codes)
    return Extern(
        partial(_execute_direct, places=places), partial(_execute_direct_native, places=places)
    )


def _execute_direct(call: Call, places: _Places) -> Run:
    name, store = call.instance.name, call.out(None)
    had, length = _before(call, places.before, places.codes), _measured(call, places.adjust)
    by_packets, clock = call.instance.word("unit") == "packets", call.state.clock
    codes = places.results(call.instance)

    def run(env: Env) -> None:
        colour = env[0].direct[name].execute(clock(), length(env), by_packets, had(env))
        store(env, codes[colour])

    return run


def _execute_direct_native(call: NativeCall, places: _Places) -> None:
    had, cell = _before_native(call, places.before, places.codes), found_cells(call)
    by_packets, length = (
        call.instance.word("unit") == "packets",
        _measured_native(call, places.adjust),
    )
    colour = execute_meter(call.code.unit, call.f, cell, length, by_packets, had)
    call.give(_coded(call, colour, places.results(call.instance)), 32)


def _before(call: Call, position: int | None, codes: Codes) -> Load:
    """Return the packet's previous colour, as meters number it.

    Constants of an enum are passed by name."""
    if position is None or len(call.stmt.args) <= position:
        return lambda env: GREEN
    arg = call.stmt.args[position]
    if isinstance(arg, ir.Const) and isinstance(arg.value, str):
        known = COLOURS[arg.value]
        return lambda env: known
    code, colours = call.arg(position), {number: colour for colour, number in codes.items()}
    return lambda env: colours.get(code(env), RED)


def _before_native(call: NativeCall, position: int | None, codes: Codes) -> Operand:
    """Return the colour that the packet had in native code, as i32."""
    if position is None or len(call.args) <= position:
        return str(GREEN)
    arg, f = call.args[position], call.f
    if isinstance(arg, ir.Const) and isinstance(arg.value, str):
        return str(COLOURS[arg.value])
    number, colour = call.code.number(arg, 32), str(RED)
    for better in (YELLOW, GREEN):
        this = f.compare("eq", "i32", number, codes[better])
        colour = f.select(this, "i32", str(better), colour)
    return colour


def _coded(call: NativeCall, colour: Operand, codes: Codes) -> Operand:
    """Return a meter's colour as the architecture numbers it (i32)."""
    if all(colour == code for colour, code in codes.items()):
        return colour
    f, code = call.f, str(codes[RED])
    for better in (YELLOW, GREEN):
        this = f.compare("eq", "i32", colour, better)
        code = f.select(this, "i32", str(codes[better]), code)
    return code
