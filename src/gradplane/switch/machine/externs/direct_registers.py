"""Direct registers: the cell of the entry that a lookup found, and those of all entries. An entry
has a cell for each pipe."""

from __future__ import annotations

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.jit.externs import PIPE, NativeCall
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.table_layout import CELLS
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.externs.arrays import found_cells, put_cell
from gradplane.switch.runtime.arrays import cell_shape


def _read(call: Call) -> Run:
    name, store, pipe = call.instance.name, call.out(None), call.state.current_pipe
    return lambda env: store(env, env[0].direct[name].cells[pipe.number])


def _read_native(call: NativeCall) -> None:
    t = call.instance.type_args[0]
    if call.stmt.result is not None:
        call.give(call.code.load(t, _of_pipe(call, found_cells(call))), scalar_width(t))


def _of_pipe(call: NativeCall, cells: Operand) -> Operand:
    """Return the address of the cell of the pipe that runs the packet."""
    kind, words = cell_shape(call.instance.type_args[0])
    pipe = call.f.word(PIPE, "i64", fixed=False)
    return call.f.add(cells, call.f.binary("mul", "i64", pipe, words * kind.itemsize))


READ = Extern(_read, _read_native)
"""Return the cell of the direct register that the table found (direct_resources.ON_CALL)."""


def _write(call: Call) -> Run:
    name, value, pipe = call.instance.name, call.arg(0), call.state.current_pipe

    def run(env: Env) -> None:
        env[0].direct[name].cells[pipe.number] = value(env)

    return run


def _write_native(call: NativeCall) -> None:
    put_cell(call, call.code.value(call.args[0]), _of_pipe(call, found_cells(call)), "")


WRITE = Extern(_write, _write_native)
"""Set the cell of the direct register that the table found to argument 0."""


def _clear(call: Call) -> Run:
    instance, value, pipe = call.instance, call.arg(0), call.state.current_pipe
    (table,) = (t for t in call.state.tables.values() if t.table.register is instance)

    def run(env: Env) -> None:
        new = value(env)
        for cell in table.register_cells():
            cell.cells[pipe.number] = new

    return run


def _clear_native(call: NativeCall) -> None:
    f, value = call.f, call.code.value(call.args[0])
    (table,) = (t for t in call.externs.program.tables if t.register is call.instance)
    listed = f.word(call.externs.tables.shapes[table.name].word(CELLS))
    with f.count(f.load("i64", listed, 8)) as index:
        following = f.binary("add", "i64", index, 1)
        cells = f.load("ptr", f.item(listed, "i64", following), 8)
        put_cell(call, value, _of_pipe(call, cells), "")


CLEAR = Extern(_clear, _clear_native, needs_packet=False)
"""Set the pipe's cells of all entries, and of misses, of the table that owns the direct register to
argument 0."""
