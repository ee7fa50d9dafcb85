"""v1model's digests: calls of a function, found in the program's actions and controls."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.ir.walk import blocks, nested
from gradplane.switch.p4runtime.typespec import is_tuple


def digest_calls(program: ir.Program) -> dict[str, tuple[Type, Type]]:
    """Return the type of each digest's data, by name: in the switch and at the controller.

    A digest has no instance: it is named after the type of its data, or numbered where that is a
    tuple.
    """
    types: dict[Type, Type] = {}
    for call in _extern_calls(program):
        if call.instance is None and call.name == "digest":
            (inside,), described = call.type_args, call.declared_type_args or call.type_args
            types.setdefault(inside, described[0])
    named = {t.name: t for t in types if isinstance(t, Fields) and not is_tuple(t)}
    others = [t for t in types if t not in named.values()]
    names = named | {f"digest_{i}": t for i, t in enumerate(others)}
    return {name: (t, types[t]) for name, t in names.items()}


def _extern_calls(program: ir.Program) -> Iterator[ir.CallExtern]:
    """Yield every extern call of the actions and of the package's controls."""
    controls = [block for _, block in blocks(program.package) if isinstance(block, ir.Control)]
    for body in (*(a.body for a in program.actions), *(c.body for c in controls)):
        yield from (stmt for stmt in nested(body) if isinstance(stmt, ir.CallExtern))
