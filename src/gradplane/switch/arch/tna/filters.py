"""Lpf, Wred and those of a table's entries in both engines: runtime/filters.py, and the same as
machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import NativeCall, filter_word
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.externs.arrays import found_cells
from gradplane.switch.runtime.filters import CELL, Filter

_AT = {name: 8 * i for i, name in enumerate(CELL)}

# -- the interpreter ----------------------------------------------------------------------------


Find = Callable[[Env], tuple[Filter, int]]
"""Finds the filter that a call executes, and the cell."""


def _indexed(call: Call) -> Find:
    cells, index = call.state.filters[call.instance.name], call.arg(1)
    return lambda env: (cells, index(env))


def _of_entry(call: Call) -> Find:
    """Find the filter that the table's lookup kept (direct_resources.ON_CALL)."""
    name = call.instance.name
    return lambda env: (env[0].direct[name], 0)


def _filter(call: Call, find: Callable[[Call], Find]) -> Run:
    clock, found, value, store = call.state.clock, find(call), call.arg(0), call.out(None)
    most = (1 << scalar_width(call.instance.type_args[0])) - 1

    def run(env: Env) -> None:
        cells, index = found(env)
        store(env, min(cells.execute(index, value(env), clock()), most))

    return run


def _drop(call: Call, find: Callable[[Call], Find]) -> Run:
    state, found, value, store = call.state, find(call), call.arg(0), call.out(None)
    drop, keep = call.instance.number("drop"), call.instance.number("keep")

    def run(env: Env) -> None:
        drawn = state.rng.draw()
        cells, index = found(env)
        dropped = cells.drops(index, value(env), state.clock(), drawn)
        store(env, drop if dropped else keep)

    return run


# -- machine code -------------------------------------------------------------------------------


Cell = tuple[Operand, Operand]
"""The address of a cell, and whether it is configured."""


def _filter_native(call: NativeCall, find: Callable[[NativeCall], Cell]) -> None:
    f, width = call.f, scalar_width(call.instance.type_args[0])
    result = f.variable("i64", call.number(0))
    cell, configured = find(call)
    with f.when(configured):
        average = _average(call, cell)
        number = f.op(f"fptosi double {average} to i64")
        scale = f.op(f"fptosi double {_number(f, cell, 'scale')} to i64")
        found = f.binary("lshr", "i64", number, scale)
        most = (1 << min(width, 62)) - 1
        result.set(f.intrinsic("llvm.umin.i64", "i64", ("i64", found), ("i64", most)))
    call.give(result.get(), 64)


def _drop_native(call: NativeCall, find: Callable[[NativeCall], Cell]) -> None:
    f = call.f
    result = f.variable("i64", call.instance.number("keep"))
    drawn = f.op(f"uitofp i64 {f.binary('lshr', 'i64', native_rng.draw(f), 11)} to double")
    cell, configured = find(call)
    with f.when(configured):
        average = _average(call, cell)
        low, high, most = (_number(f, cell, name) for name in ("low", "high", "most"))
        chance = f.op(f"fmul double {drawn}, {2.0**-53!r}")
        span = f.op(f"fsub double {high}, {low}")
        left = f.op(f"fmul double {chance}, {span}")
        above = f.op(f"fsub double {average}, {low}")
        right = f.op(f"fmul double {most}, {above}")
        between = f.op(f"fcmp olt double {left}, {right}")
        whole = f.op(f"fcmp oge double {average}, {high}")
        enough = f.op(f"fcmp oge double {average}, {low}")
        some = f.binary("and", "i1", enough, f.binary("or", "i1", whole, between))
        drop, keep = call.instance.number("drop"), call.instance.number("keep")
        result.set(f.select(some, "i64", drop, keep))
    call.give(result.get(), 64)


def _cell_at(call: NativeCall) -> Cell:
    """Return the cell at argument 1; beyond the end the first one, as not configured."""
    f = call.f
    inside, at = call.index(1, call.instance.number("size"))
    place = f.binary("mul", "i64", at, 8 * len(CELL))
    cell = f.add(f.word(filter_word(call.instance.name)), place)
    return cell, f.binary("and", "i1", inside, _configured(f, cell))


def _cell_found(call: NativeCall) -> Cell:
    """Return the cell of the entry that the table found."""
    cell = found_cells(call)
    return cell, _configured(call.f, cell)


def _configured(f: Function, cell: Operand) -> Operand:
    return f.op(f"fcmp une double {_number(f, cell, 'configured')}, 0.0")


def _average(call: NativeCall, cell: Operand) -> Operand:
    if not call.code.unit.module.has("filter"):
        _write_average(call.code.unit)
    value = call.f.op(f"uitofp i64 {call.number(0)} to double")
    now = call.f.op(f"sitofp i64 {call.f.word('now', 'i64')} to double")
    args = (("ptr", cell), ("double", value), ("double", now))
    return call.f.call("double", "filter", *args)


def _write_average(unit: Unit) -> None:
    """Write double filter(ptr cell, double value, double now): Filter._average."""
    params = [("ptr", "%cell"), ("double", "%value"), ("double", "%now")]
    f = unit.module.function("filter", "double", params, attributes="noinline ")
    former, last = _number(f, "%cell", "value"), _number(f, "%cell", "last")
    passed = f.op(f"fsub double %now, {last}")
    back = f.op(f"fneg double {passed}")
    rising = f.op(f"fcmp ogt double %value, {former}")
    gain, decay = _number(f, "%cell", "gain"), _number(f, "%cell", "decay")
    rate = f.op(f"fcmp une double {_number(f, '%cell', 'rate')}, 0.0")
    chosen = f.select(rising, "double", gain, decay)
    constant = f.select(rate, "double", decay, chosen)
    left = f.intrinsic("exp", "double", ("double", f.op(f"fdiv double {back}, {constant}")))
    summed = f.op(f"fadd double {f.op(f'fmul double {former}, {left}')}, %value")
    gone = f.op(f"fsub double 1.0, {left}")
    step = f.op(f"fmul double {f.op(f'fsub double %value, {former}')}, {gone}")
    average = f.select(rate, "double", summed, f.op(f"fadd double {former}, {step}"))
    f.store("double", average, f.add("%cell", _AT["value"]), 8)
    f.store("double", "%now", f.add("%cell", _AT["last"]), 8)
    f.ret(average)


def _number(f: Function, cell: Operand, name: str) -> Operand:
    return f.load("double", f.add(cell, _AT[name]), 8)


LPF = Extern(
    partial(_filter, find=_indexed), partial(_filter_native, find=_cell_at),
    numbers=(0, 1), needs_packet=False,
)  # fmt: skip
"""Lpf.execute(value, index)."""

WRED = Extern(
    partial(_drop, find=_indexed), partial(_drop_native, find=_cell_at),
    numbers=(0, 1), needs_packet=False,
)  # fmt: skip
"""Wred.execute(value, index)."""

DIRECT_LPF = Extern(
    partial(_filter, find=_of_entry), partial(_filter_native, find=_cell_found), numbers=(0,)
)
"""DirectLpf.execute(value), in an action of its table."""

DIRECT_WRED = Extern(
    partial(_drop, find=_of_entry), partial(_drop_native, find=_cell_found), numbers=(0,)
)
"""DirectWred.execute(value), in an action of its table."""
