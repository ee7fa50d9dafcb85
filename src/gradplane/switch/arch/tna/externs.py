"""TNA's externs: a row each, with both engines' implementations and where it may be called.

Functions whose names end in `_native` write machine code. Register actions are inlined when a
program is compiled (lower/register_actions.py), and others replaced by statements when it is loaded
(desugaring.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradplane.switch.arch.tna import true_accounting
from gradplane.switch.arch.tna.filters import DIRECT_LPF, DIRECT_WRED, LPF, WRED
from gradplane.switch.arch.tna.learn_actions import TABLE_DIGEST
from gradplane.switch.arch.tna.parser_choices import MOST, parser_name
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.jit import native_rng
from gradplane.switch.jit.externs import PIPE, NativeCall, hashed, hashed_by
from gradplane.switch.jit.fields import FieldList
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.table_layout import CELLS
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, messages
from gradplane.switch.machine.externs.arrays import found_cells, put_cell
from gradplane.switch.machine.text_externs import TextBody
from gradplane.switch.runtime.arrays import cell_shape
from gradplane.switch.runtime.dynamic_hashes import filled
from gradplane.switch.runtime.hashes import csum16
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

_HERE = Path(__file__).parent

COLOUR_CODES = {GREEN: 0, YELLOW: 1, RED: 3}  # MeterColor_t


def _result_codes(instance: ir.ExternInstance) -> arrays.Codes:
    """Return the numbers of a meter's results, which its constructor may choose."""
    return {
        GREEN: instance.number("green", COLOUR_CODES[GREEN]),
        YELLOW: instance.number("yellow", COLOUR_CODES[YELLOW]),
        RED: instance.number("red", COLOUR_CODES[RED]),
    }


# -- hashes: the algorithms of HashAlgorithm_t, and CRCs by a polynomial of the program's -------


def _hash(call: Call) -> Run:
    algorithm, store = call.instance.word("algorithm"), call.out(None)
    if algorithm == "random":
        draw = call.state.rng.draw
        return lambda env: store(env, draw())
    data = call.bits_of(filled(call.instance, [call.stmt.args[0]]))
    compute = call.state.hashes[call.instance.name].compute
    return lambda env: store(env, compute(data(env)))


def _hash_native(call: NativeCall) -> None:
    algorithm, f = call.instance.word("algorithm"), call.f
    if algorithm == "random":
        call.give(native_rng.draw(f), 64)
        return
    found = hashed_by(
        call.code, call.instance, FieldList(call.code, filled(call.instance, [call.args[0]]))
    )
    call.give(found, 64)


_GET_HASH = Extern(_hash, _hash_native, needs_packet=False)
"""Hash<W>(algorithm[, polynomial]).get(data): the lowest W bits. The control plane may replace the
algorithm (runtime/dynamic_hashes.py)."""


# -- random numbers -----------------------------------------------------------------------------


_DRAWN = 64  # bits of a drawn number


def _draws(call: ir.CallExtern) -> int:
    """Return how many drawn numbers make the result."""
    return 1 if call.result is None else -(-(bit_width(call.result.type) or 1) // _DRAWN)


def _random(call: Call) -> Run:
    draw, store, draws = call.state.rng.draw, call.out(None), _draws(call.stmt)

    def run(env: Env) -> None:
        value = 0
        for _ in range(draws):
            value = value << _DRAWN | draw()
        store(env, value)

    return run


def _random_native(call: NativeCall) -> None:
    f, draws = call.f, _draws(call.stmt)
    width = _DRAWN * draws
    value: Operand = "0"
    for _ in range(draws):
        drawn = native_rng.draw(f)
        if draws == 1:
            value = drawn
            break
        moved = f.binary("shl", f"i{width}", value, _DRAWN)
        value = f.binary("or", f"i{width}", moved, f.resize(drawn, _DRAWN, width))
    call.give(value, width)


RANDOM = Extern(_random, _random_native, needs_packet=False)
"""Random<W>().get(): a number of W bits."""

# -- checksums in deparsers ---------------------------------------------------------------------


def _zeros_as_ones(call: ir.CallExtern) -> bool:
    last = call.args[-1]
    return len(call.args) > 2 and isinstance(last, ir.Const) and bool(last.value)


def _update(call: Call) -> Run:
    store, data, ones = call.out(None), call.data(1), _zeros_as_ones(call.stmt)

    def run(env: Env) -> None:
        found = csum16(data(env))
        store(env, 0xFFFF if ones and not found else found)

    return run


def _update_native(call: NativeCall) -> None:
    found = hashed(call.code, "csum16", FieldList(call.code, [call.args[1]]))
    if _zeros_as_ones(call.stmt):
        none = call.f.compare("eq", "i64", found, 0)
        found = call.f.select(none, "i64", 0xFFFF, found)
    call.give(found, 64)


CHECKSUM_UPDATE = Extern(_update, _update_native)
"""Checksum().update(data, zeros_as_ones); argument 0 is the state that parsers use."""

# -- what deparsers ask of the traffic manager ---------------------------------------------------


def _emit(name: str, most: int) -> Extern:
    """Return the row of an extern whose bodies are in path.p4: one for calls with the header, which
    is the last of `most` arguments, and one for calls without."""
    whole, alone = TextBody(_HERE, name), TextBody(_HERE, f"{name}_alone")

    def body(args: Sequence[ir.Expr]) -> TextBody:
        return whole if len(args) == most else alone

    return Extern(
        lambda call: body(call.stmt.args).closure(call, call.stmt.args),
        lambda call: body(call.args).write(call, call.args),
        numbers=tuple(range(most - 1)),
        bodies=(whole.name, alone.name),
    )


# -- direct registers: the cell of the entry that a lookup found, for each pipe ------------------


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


_READ = Extern(_read, _read_native)
"""Return the cell of the direct register that the table found (direct_resources.ON_CALL)."""


def _write(call: Call) -> Run:
    name, value, pipe = call.instance.name, call.arg(0), call.state.current_pipe

    def run(env: Env) -> None:
        env[0].direct[name].cells[pipe.number] = value(env)

    return run


def _write_native(call: NativeCall) -> None:
    put_cell(call, call.code.value(call.args[0]), _of_pipe(call, found_cells(call)), "")


_WRITE = Extern(_write, _write_native)
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


_CLEAR = Extern(_clear, _clear_native, needs_packet=False)
"""Set the pipe's cells of all entries, and of misses, of the table that owns the direct register to
argument 0."""


# -- the table ----------------------------------------------------------------------------------

INGRESS_PARSERS, EGRESS_PARSERS = (
    tuple(f"pipe{i}.{parser_name(side, n)}" for i in range(4) for n in range(MOST))
    for side in ("ingress_parser", "egress_parser")
)
INGRESS_DEPARSERS = tuple(f"pipe{i}.ingress_deparser" for i in range(4))
EGRESS_DEPARSERS = tuple(f"pipe{i}.egress_deparser" for i in range(4))
_PARSERS = (*INGRESS_PARSERS, *EGRESS_PARSERS)
_DEPARSERS = (*INGRESS_DEPARSERS, *EGRESS_DEPARSERS)

EXTERNS: Externs = {
    ("Register", "read"): arrays.register_read(index=0),
    ("Register", "write"): arrays.REGISTER_WRITE,
    ("Register", "clear"): arrays.REGISTER_CLEAR,
    ("DirectRegister", "read"): _READ,
    ("DirectRegister", "write"): _WRITE,
    ("DirectRegister", "clear"): _CLEAR,
    ("RegisterParam", "read"): arrays.register_read(index=0),
    (ir.HIDDEN_REGISTER, "read"): arrays.register_read(index=0),
    (ir.HIDDEN_REGISTER, "write"): arrays.REGISTER_WRITE,
    ("Counter", "count"): true_accounting.accounted(
        arrays.count(adjust=1), true_accounting.correction, true_accounting.cell
    ),
    ("DirectCounter", "count"): true_accounting.accounted(
        arrays.count_direct(adjust=0),
        true_accounting.correction_of_entry,
        true_accounting.cell_of_entry,
    ),
    ("Meter", "execute"): arrays.meter_execute(
        index=0, codes=COLOUR_CODES, before=1, adjust=2, own_codes=_result_codes
    ),
    ("DirectMeter", "execute"): arrays.direct_meter_execute(
        codes=COLOUR_CODES, before=0, adjust=1, own_codes=_result_codes
    ),
    ("Lpf", "execute"): LPF,
    ("Wred", "execute"): WRED,
    ("DirectLpf", "execute"): DIRECT_LPF,
    ("DirectWred", "execute"): DIRECT_WRED,
    ("Random", "get"): RANDOM,
    ("", ir.TABLE_DIGEST): TABLE_DIGEST,
    ("Hash", "get"): _GET_HASH,
    ("Checksum", "add"): checksums.ADD.within(*_PARSERS),
    ("Checksum", "subtract"): checksums.SUBTRACT.within(*_PARSERS),
    ("Checksum", "update"): CHECKSUM_UPDATE.within(*_DEPARSERS),
    ("Digest", "pack"): messages.digest(data=0).within(*INGRESS_DEPARSERS),
    ("Pktgen", "emit"): messages.digest(data=0).within(*INGRESS_DEPARSERS),
    ("Mirror", "emit"): _emit("mirror_emit", 2).within(*_DEPARSERS),
    ("Resubmit", "emit"): _emit("resubmit_emit", 1).within(*INGRESS_DEPARSERS),
}
