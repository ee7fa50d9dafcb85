"""The toy's externs: two that others have too, by other names, and one of its own."""

from __future__ import annotations

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Run
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays


def _ones(call: Call) -> Run:
    first, second, store = call.arg(0), call.arg(1), call.out(None)
    return lambda env: store(env, first(env).bit_count() + second(env).bit_count())


def _ones_native(call: NativeCall) -> None:
    f = call.f
    counts = (f.intrinsic("llvm.ctpop.i64", "i64", ("i64", call.number(i))) for i in (0, 1))
    call.give(f.binary("add", "i64", *counts), 64)


EXTERNS: Externs = {
    ("Tally", "add"): arrays.COUNT,
    ("Cells", "get"): arrays.register_read(index=0),
    ("Cells", "set"): arrays.REGISTER_WRITE.within("work"),
    ("", "ones"): Extern(_ones, _ones_native),
}
