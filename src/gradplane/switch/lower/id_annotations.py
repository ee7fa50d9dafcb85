"""Check the numbers that `@id` gives to control-plane objects: unique within their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotations
from gradplane.switch.source import Reporter, Span

Numbered = tuple[str, Annotations, Span]

_PROFILES = ("action_profile", "action_selector")  # one kind in P4Runtime
_LOW = (1 << 24) - 1  # the upper byte of an object's id encodes its kind


def check_numbers(program: ir.Program, reporter: Reporter) -> None:
    """Report objects of a kind, keys of a table and parameters of an action with equal numbers."""
    for group in _groups(program):
        seen: dict[int, str] = {}
        for name, notes, span in group:
            number = next((a.values[0] for a in notes if a.name == "id" and a.values), None)
            if not isinstance(number, int):
                continue
            first = seen.setdefault(number & _LOW, name)
            if first != name:
                reporter.error(span, f"{name} has the same @id as {first}: {number}")


def _groups(program: ir.Program) -> Iterator[Iterable[Numbered]]:
    for objects in (program.tables, program.actions, program.value_sets):
        yield [(o.name, o.annotations, o.span) for o in objects]
    kinds: dict[str, list[ir.ExternInstance]] = {}
    for x in program.externs:
        kinds.setdefault("profile" if x.kind in _PROFILES else x.kind, []).append(x)
    for of_kind in kinds.values():
        yield [(x.name, x.annotations, x.span) for x in of_kind]
    for table in program.tables:
        yield [(f"key {k.name}", k.annotations, table.span) for k in table.keys]
    for action in program.actions:
        yield [(f"parameter {v.name}", v.annotations, action.span) for v in action.params]
