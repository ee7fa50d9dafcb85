"""The hashes that a program computes, and the fields that each takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradplane.switch.arch.load_checks import extern_calls
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Fields, bit_width


@dataclass(frozen=True, slots=True)
class HashedField:
    """A number that a hash takes: `width` bits; `value`: a constant's, None for others."""

    name: str
    width: int
    value: int | None = None


def called_hashes(program: ir.Program) -> list[ir.ExternInstance]:
    """Return the hashes that a program computes, by name; a selector's own are not among them."""
    found = {instance.name: instance for instance, _ in _calls(program)}
    return [found[name] for name in sorted(found)]


def hashed_fields(program: ir.Program, instance: ir.ExternInstance) -> Sequence[HashedField]:
    """Return what a hash takes, in order; nothing if that is not the same in all calls, or if two
    fields have one name."""
    lists = {tuple(_fields(call.args[0])) for called, call in _calls(program) if called is instance}
    if len(lists) != 1:
        return ()
    (found,) = lists
    names = [f.name for f in found if f.value is None]
    return found if len(set(names)) == len(names) else ()


def _calls(program: ir.Program) -> Iterator[tuple[ir.ExternInstance, ir.CallExtern]]:
    for _, call in extern_calls(program):
        instance = call.instance
        if instance and instance.kind == "hash" and instance.word("algorithm") != "random":
            yield instance, call


def _fields(e: ir.Expr) -> Iterator[HashedField]:
    """Yield the numbers of a value; none of a varbit."""
    if isinstance(e.type, Fields):
        for i in range(len(e.type.fields)):
            yield from _fields(e.fields[i] if isinstance(e, ir.Make) else build.field(e, i))
        return
    width = bit_width(e.type)
    if width:
        value = int(e.value) if isinstance(e, ir.Const) and isinstance(e.value, int) else None
        yield HashedField(expression_text(e), width, value)
