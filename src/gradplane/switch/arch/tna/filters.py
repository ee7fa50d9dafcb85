"""Lpf and Wred in both engines: runtime/filters.py, and the same as machine code."""

from __future__ import annotations

from gradplane.switch.arch.extern_table import Extern
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Env, Run
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import NativeCall, filter_word
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.runtime.filters import CELL

_AT = {name: 8 * i for i, name in enumerate(CELL)}

# -- the interpreter ----------------------------------------------------------------------------


def _filter(call: Call) -> Run:
    cells, clock = call.state.filters[call.instance.name], call.state.clock
    value, index, store = call.arg(0), call.arg(1), call.out(None)
    most = (1 << scalar_width(call.instance.type_args[0])) - 1

    def run(env: Env) -> None:
        store(env, min(cells.execute(index(env), value(env), clock()), most))

    return run


def _drop(call: Call) -> Run:
    cells, state = call.state.filters[call.instance.name], call.state
    value, index, store = call.arg(0), call.arg(1), call.out(None)
    drop, keep = call.instance.number("drop"), call.instance.number("keep")

    def run(env: Env) -> None:
        drawn = state.rng.draw()
        dropped = cells.drops(index(env), value(env), state.clock(), drawn)
        store(env, drop if dropped else keep)

    return run


# -- machine code -------------------------------------------------------------------------------


def _filter_native(call: NativeCall) -> None:
    f, width = call.f, scalar_width(call.instance.type_args[0])
    result = f.variable("i64", call.number(0))
    cell, configured = _cell(call)
    with f.when(configured):
        average = _average(call, cell)
        number = f.op(f"fptosi double {average} to i64")
        scale = f.op(f"fptosi double {_number(f, cell, 'scale')} to i64")
        found = f.binary("lshr", "i64", number, scale)
        most = (1 << min(width, 62)) - 1
        result.set(f.intrinsic("llvm.umin.i64", "i64", ("i64", found), ("i64", most)))
    call.give(result.get(), 64)


def _drop_native(call: NativeCall) -> None:
    f = call.f
    result = f.variable("i64", call.instance.number("keep"))
    drawn = f.op(f"uitofp i64 {f.binary('lshr', 'i64', native_rng.draw(f), 11)} to double")
    cell, configured = _cell(call)
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


def _cell(call: NativeCall) -> tuple[Operand, Operand]:
    """Return the address of the cell (of the first one beyond the end), and whether it is
    configured."""
    f = call.f
    inside, at = call.index(1, call.instance.number("size"))
    place = f.binary("mul", "i64", at, 8 * len(CELL))
    cell = f.add(f.word(filter_word(call.instance.name)), place)
    set_up = f.op(f"fcmp une double {_number(f, cell, 'configured')}, 0.0")
    return cell, f.binary("and", "i1", inside, set_up)


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


LPF = Extern(_filter, _filter_native, numbers=(0, 1), needs_packet=False)
"""Lpf.execute(value, index)."""

WRED = Extern(_drop, _drop_native, numbers=(0, 1), needs_packet=False)
"""Wred.execute(value, index)."""
