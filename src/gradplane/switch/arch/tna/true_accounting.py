"""Counters with true egress accounting, of Tofino 2: they count the bytes with which a packet
leaves the egress deparser, not those with which it came to egress.

A count adds the packet's length as any other, and leaves a note on the packet; behind the deparser
the difference is added. A counter counts a packet once: of several counts the last is noted.
Meters measure a packet where they are executed, with the length before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.externs import NativeCall, counter_word
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import Context
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.machine.externs.arrays import found_cells

ROLE = "true accounting"
"""The role of the constructor's argument."""

Correct = Callable[[int], None]
"""Adds a number of bytes to what was counted."""


def notes(program: ir.Program) -> list[str]:
    """Return the names of the notes that a program's counters leave on a packet in egress."""
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
        context = call.code.context
        if _note(call.instance) in context.slots:
            f = call.f
            address, there = cell(call)
            noted = f.select(there, "i64", f.op(f"ptrtoint ptr {address} to i64"), 0)
            context.set(f, "%c", _note(call.instance), noted)

    return replace(count, interpret=interpret, compile=compile)


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


def start_native(f: Function, context: Context, c: Operand, names: Iterable[str]) -> None:
    """Begin a packet without notes."""
    for name in names:
        context.set(f, c, name, 0)


def correct_native(
    f: Function, context: Context, c: Operand, names: Iterable[str], more: Operand
) -> None:
    """Add bytes to all counts that the packet has notes of."""
    for name in names:
        at = context.get(f, c, name)
        with f.when(f.compare("ne", "i64", at, 0)):
            address = f.op(f"inttoptr i64 {at} to ptr")
            counted = f.binary("add", "i64", f.load("i64", address, 8), more)
            f.store("i64", counted, address, 8)
