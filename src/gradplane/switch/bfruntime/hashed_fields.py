"""The hashes that a program computes, and the fields that each takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradplane.switch.arch.load_checks import extern_calls
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Fields, bit_width
from gradplane.switch.runtime.dynamic_hashes import is_symmetric, selector_hash


@dataclass(frozen=True, slots=True)
class HashedField:
    """A number that a hash takes: `width` bits; `value`: a constant's, None for others."""

    name: str
    width: int
    value: int | None = None


def called_hashes(program: ir.Program) -> list[ir.ExternInstance]:
    """Return the hashes that a program computes, by name, those of its selectors included."""
    found = {instance.name: instance for instance, _ in _uses(program)}
    return [found[name] for name in sorted(found)]


def hashed_fields(program: ir.Program, instance: ir.ExternInstance) -> Sequence[HashedField]:
    """Return what a hash takes, in order; nothing if that is not the same in all calls, or if two
    fields have one name."""
    lists = {fields for used, fields in _uses(program) if used is instance}
    if len(lists) != 1:
        return ()
    (found,) = lists
    names = [f.name for f in found if f.value is None]
    return found if len(set(names)) == len(names) else ()


def configured_fields(fields: Sequence[HashedField]) -> list[HashedField]:
    """Return the fields with names for the constants, by number, width and value."""
    constants = (f for f in fields if f.value is not None)
    names = {id(f): f"constant{i}_{f.width}_{f.value}" for i, f in enumerate(constants)}
    return [replace(f, name=names.get(id(f), f.name)) for f in fields]


def _uses(
    program: ir.Program,
) -> Iterator[tuple[ir.ExternInstance, tuple[HashedField, ...]]]:
    """Yield each use of a hash, with what it takes there; those with symmetric fields stay as they
    are, as in the driver."""
    for instance, fields in _all_uses(program):
        if not is_symmetric(instance):
            yield instance, fields


def _all_uses(
    program: ir.Program,
) -> Iterator[tuple[ir.ExternInstance, tuple[HashedField, ...]]]:
    for _, call in extern_calls(program):
        instance = call.instance
        if instance and instance.kind == "hash" and instance.word("algorithm") != "random":
            yield instance, tuple(_fields(call.args[0]))
    for table in program.tables:
        made = selector_hash(table.implementation) if table.implementation else None
        if made is not None and made.word("algorithm") != "random":
            keys = (key.expr for key in table.keys if key.match_kind == "selector")
            yield made, tuple(field for key in keys for field in _fields(key))


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
