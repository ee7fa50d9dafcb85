"""v1model's digests: calls of a function, found in the program's actions and controls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.p4runtime.typespec import is_tuple


def digest_calls(program: ir.Program) -> dict[str, tuple[Type, Type]]:
    """Name of the digest -> type of its data, in the switch and as controllers are told it.

    A digest has no instance: it goes by the name of its data's type, or by a number where that is
    a tuple.
    """
    types: dict[Type, Type] = {}
    for call in _extern_calls(program):
        if call.instance is None and call.name == "digest":
            (inside,), told = call.type_args, call.told_args or call.type_args
            types.setdefault(inside, told[0])
    named = {t.name: t for t in types if isinstance(t, Fields) and not is_tuple(t)}
    others = [t for t in types if t not in named.values()]
    names = named | {f"digest_{i}": t for i, t in enumerate(others)}
    return {name: (t, types[t]) for name, t in names.items()}


def _extern_calls(program: ir.Program) -> Iterator[ir.CallExtern]:
    """Every extern call of the package's controls and of the actions."""
    for action in program.actions:
        yield from _calls_in(action.body)
    for control in _controls(program.package):
        yield from _calls_in(control.body)


def _controls(package: ir.Package) -> Iterator[ir.Control]:
    for arg in package.args.values():
        if isinstance(arg, ir.Control):
            yield arg
        elif isinstance(arg, ir.Package):
            yield from _controls(arg)


def _calls_in(body: Iterable[ir.Stmt]) -> Iterator[ir.CallExtern]:
    for stmt in body:
        match stmt:
            case ir.CallExtern():
                yield stmt
            case ir.If():
                yield from _calls_in(stmt.then + stmt.other)
            case ir.Switch():
                for _, case in stmt.cases:
                    yield from _calls_in(case)
                yield from _calls_in(stmt.default)
            case ir.Block() | ir.Loop():
                yield from _calls_in(stmt.body)
