"""Counters with true egress accounting, of Tofino 2: they count the bytes with which a packet
leaves the egress deparser, not those with which it came to egress.

A count adds the packet's length as any other, and leaves a note on the packet; behind the deparser
the difference is added. A counter counts a packet once: of several counts the last is noted.
Meters measure a packet where they are executed, with the length before.
"""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.externs import NativeCall, counter_word
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.externs.arrays import found_cells
from gradplane.switch.machine.interpreted_paths import PathCall
from gradplane.switch.machine.native_paths import NativePathCall
from gradplane.switch.machine.weaving import Primitive

ROLE = "true accounting"
"""The role of the constructor's argument."""

Correct = Callable[[int], None]
"""Adds a number of bytes to what was counted."""


def notes(program: ir.Program) -> list[str]:
    """Return the names of the notes that a program's counters leave on a packet in egress: the
    addresses of the bytes counted, 0 for none."""
    return [_note(e) for e in program.externs if e.number(ROLE, 0)]


def _note(instance: ir.ExternInstance) -> str:
    return f"bytes of {instance.name}"


def accounted(
    count: Extern,
    correction: Callable[[Call], Callable[[Env], Correct]],
    cell: Callable[[NativeCall], tuple[Operand, Operand]],
) -> Extern:
    """Return a counter's `count` with true accounting where the program asks for it.

    correction: returns what finds the correction of a packet's count. cell: writes what finds the
    address of the bytes counted, and whether there is such a cell.
    """

    def interpret(call: Call) -> Run:
        run = count.interpret(call)
        if call.instance is None or not call.instance.number(ROLE, 0):
            return run
        find, name = correction(call), call.instance.name

        def noted(env: Env) -> None:
            run(env)
            env[0].counted[name] = find(env)

        return noted

    def compile(call: NativeCall) -> None:
        count.compile(call)
        if _note(call.instance) in call.code.context.slots:
            f = call.f
            address, there = cell(call)
            noted = f.select(there, "i64", f.op(f"ptrtoint ptr {address} to i64"), 0)
            call.code.note(_note(call.instance), noted)

    return count._replace(interpret=interpret, compile=compile)


def correction(call: Call) -> Callable[[Env], Correct]:
    """Return what finds the correction of an indexed counter."""
    counter, index = call.state.counters[call.instance.name], call.arg(0)

    def find(env: Env) -> Correct:
        at = index(env)
        return lambda more: counter.add_bytes(at, more)

    return find


def cell(call: NativeCall) -> tuple[Operand, Operand]:
    inside, index = call.index(0, call.instance.number("size"))
    f = call.f
    return f.item(f.word(counter_word(call.instance.name, "bytes")), "i64", index), inside


def correction_of_entry(call: Call) -> Callable[[Env], Correct]:
    """Return what finds the correction of a table's direct counter."""
    name = call.instance.name

    def find(env: Env) -> Correct:
        count = env[0].direct[name]

        def correct(more: int) -> None:
            count.bytes += more

        return correct

    return find


def cell_of_entry(call: NativeCall) -> tuple[Operand, Operand]:
    return call.f.add(found_cells(call), 8), "true"


def _recount(call: PathCall) -> Run:
    slot, before, after = call.packet(0).packet, call.arg(1), call.arg(2)

    def run(env: Env) -> None:
        for correct in env[slot].counted.values():
            correct(after(env) - before(env))

    return run


def _recount_native(call: NativePathCall) -> None:
    f, (memory, c) = call.f, call.code.packet(call.args[0])
    more = f.binary("sub", "i64", call.number(2), call.number(1))
    for name in memory.slots:
        at = memory.context.get(f, c, name)
        with f.when(f.compare("ne", "i64", at, 0)):
            address = f.op(f"inttoptr i64 {at} to ptr")
            counted = f.binary("add", "i64", f.load("i64", address, 8), more)
            f.store("i64", counted, address, 8)


RECOUNT = Primitive(_recount, _recount_native)
"""recount(packet, before, after): add a packet's growth to all counts that it has notes of."""
