"""Direct registers: the cell of the entry that a lookup found, and those of all entries."""

from __future__ import annotations

from gradplane.switch.arch.extern_table import Extern
from gradplane.switch.arch.externs.arrays import found_cells, put_cell
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.frame_layout import Env, Run
from gradplane.switch.jit.externs import NativeCall
from gradplane.switch.jit.table_layout import CELLS
from gradplane.switch.jit.value_layout import scalar_width


def _read(call: Call) -> Run:
    name, store = call.instance.name, call.out(None)
    return lambda env: store(env, env[0].direct[name].cells[0])


def _read_native(call: NativeCall) -> None:
    t = call.instance.type_args[0]
    if call.stmt.result is not None:
        call.give(call.code.load(t, found_cells(call)), scalar_width(t))


READ = Extern(_read, _read_native)
"""Return the cell of the direct register that the table found (direct_resources.ON_CALL)."""


def _write(call: Call) -> Run:
    name, value = call.instance.name, call.arg(0)

    def run(env: Env) -> None:
        env[0].direct[name].cells[0] = value(env)

    return run


def _write_native(call: NativeCall) -> None:
    put_cell(call, call.code.value(call.args[0]), found_cells(call), "")


WRITE = Extern(_write, _write_native)
"""Set the cell of the direct register that the table found to argument 0."""


def _clear(call: Call) -> Run:
    instance, value = call.instance, call.arg(0)
    (table,) = (t for t in call.state.tables.values() if t.table.register is instance)

    def run(env: Env) -> None:
        new = value(env)
        for cell in table.register_cells():
            cell.cells[0] = new

    return run


def _clear_native(call: NativeCall) -> None:
    f, value = call.f, call.code.value(call.args[0])
    (table,) = (t for t in call.externs.program.tables if t.register is call.instance)
    listed = f.word(call.externs.tables.shapes[table.name].word(CELLS))
    with f.count(f.load("i64", listed, 8)) as index:
        following = f.binary("add", "i64", index, 1)
        put_cell(call, value, f.load("ptr", f.item(listed, "i64", following), 8), "")


CLEAR = Extern(_clear, _clear_native, needs_packet=False)
"""Set the cells of all entries, and of misses, of the table that owns the direct register to
argument 0."""
