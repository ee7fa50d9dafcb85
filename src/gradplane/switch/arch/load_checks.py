"""What is refused when a program is loaded: externs that its architecture does not have, calls in
the wrong place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gradplane.switch.arch.externs import Externs
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import blocks, nested, statements
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.source import Diagnostic

MAX_CELLS = 1 << 26
_ARRAYS = ("register", "counter", "meter")
_WITHOUT_PACKET = {(t, name) for t in ("register", "Register") for name in ("read", "write")}
_WITHOUT_PACKET |= {("", name) for name in ("random", "hash", "log_msg", "assert", "assume")}
_WITHOUT_PACKET |= {("Random", "read"), ("Hash", "get_hash")}
MoreChecks = Callable[[str, ir.CallExtern, str], Iterable[Diagnostic]]
"""Of a block, a call in it and the extern's full name."""


@dataclass(frozen=True, slots=True)
class Rules:
    """`places`: the blocks in words, by package parameter. `instances`: the types that can be
    instantiated. `numbers`: of a call, the arguments that must be numbers, though the checker
    takes any type there."""

    architecture: str
    places: Mapping[str, str]
    externs: Externs
    instances: frozenset[str]
    numbers: Mapping[str, tuple[int, ...]]
    more: MoreChecks


def problems(program: ir.Program, rules: Rules) -> list[Diagnostic]:
    """All that is wrong with a program's instances and calls."""
    found = [*_instances(program, rules), *_tables(program), *_calls(program, rules)]
    return [*found, *_methods(program, rules)]


def _instances(program: ir.Program, rules: Rules) -> Iterable[Diagnostic]:
    for instance in program.externs:
        if instance.own is None and instance.type not in rules.instances:
            hint = f"implemented: {', '.join(sorted(rules.instances))}"
            what = f"extern {instance.type} is not implemented by {rules.architecture}"
            yield Diagnostic(instance.span, what, hint=hint)
        elif instance.kind == "register":
            cell = instance.type_args[0]
            if not isinstance(cell, Bits | Bool):
                what = f"{instance.type} of {cell}: a cell must be bit<W>, int<W> or bool"
                yield Diagnostic(instance.span, what)
        size = instance.args[0] if instance.kind in _ARRAYS and instance.args else 0
        if isinstance(size, int) and size > MAX_CELLS:
            what = f"{instance.name} has {size} cells: {MAX_CELLS} is the most there can be"
            yield Diagnostic(instance.span, what)


def _tables(program: ir.Program) -> Iterable[Diagnostic]:
    for table in program.tables:
        kinds = [key.match_kind for key in table.keys]
        if kinds.count("lpm") > 1:
            hint = "match the others exact or ternary"
            yield Diagnostic(table.span, f"table {table.name} has more than one lpm key", hint=hint)
        shared = table.implementation
        if "selector" in kinds and (shared is None or shared.kind != "action_selector"):
            hint = "implementation = action_selector(...);"
            what = f"table {table.name} has a key of kind selector and no action selector"
            yield Diagnostic(table.span, what, hint=hint)
    yield from _shared(program)


def _shared(program: ir.Program) -> Iterable[Diagnostic]:
    """Tables that share an action profile list the same actions, since its members are for all of
    them; those that share a selector give its hash the same input."""
    first: dict[ir.ExternInstance, ir.Table] = {}
    for table in program.tables:
        if table.implementation is None:
            continue
        other = first.setdefault(table.implementation, table)
        for what, of in (("actions", _action_names), ("keys of kind selector", _selector_keys)):
            if of(table) != of(other):
                where = f"shares {table.implementation.name} with table {other.name}"
                told = f"table {table.name} {where}, but not its {what}"
                hint = f"table {other.name} has {', '.join(of(other)) or 'none'}"
                yield Diagnostic(table.span, told, hint=hint)


def _action_names(table: ir.Table) -> list[str]:
    """Of those that a member can have."""
    choices = (c for c in table.actions if all(a.name != "defaultonly" for a in c.annotations))
    return sorted(choice.action.name for choice in choices)


def _selector_keys(table: ir.Table) -> list[str]:
    return [key.name for key in table.keys if key.match_kind == "selector"]


def _calls(program: ir.Program, rules: Rules) -> Iterable[Diagnostic]:
    for place, block in blocks(program.package):
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern):
                yield from _call(place, stmt, rules)


def _methods(program: ir.Program, rules: Rules) -> Iterable[Diagnostic]:
    """The calls in abstract methods of the program's own externs, which see no packet."""
    for instance in program.externs:
        for method in instance.own.methods if instance.own is not None else ():
            for stmt in nested(method.body):
                if not isinstance(stmt, ir.CallExtern):
                    continue
                owner = stmt.instance.type if stmt.instance else ""
                if (owner, stmt.name) in _WITHOUT_PACKET:
                    yield from _call("", stmt, rules)
                else:
                    name = f"{owner}.{stmt.name}" if owner else stmt.name
                    what = f"{name} may not be called in method {method.name}, which sees no packet"
                    yield Diagnostic(stmt.span, what)


def _call(place: str, call: ir.CallExtern, rules: Rules) -> Iterable[Diagnostic]:
    owner = call.instance.type if call.instance else ""
    name = f"{owner}.{call.name}" if owner else call.name
    extern = rules.externs.get((owner, call.name))
    if extern is None:
        if owner in rules.instances or not owner:
            what = f"extern {name} is not implemented by {rules.architecture}"
            yield Diagnostic(call.span, what)
        return
    if extern.places is not None and place not in extern.places:
        allowed = " and ".join(rules.places[p] for p in rules.places if p in extern.places)
        what = f"{name} may be called in {allowed} only, not in {rules.places[place]}"
        yield Diagnostic(call.span, what)
    for position in rules.numbers.get(call.name, ()):
        t = call.args[position].type
        if not isinstance(t, Bits | Bool):
            what = f"argument {position + 1} of {name} must be bit<W>, int<W> or bool, not {t}"
            yield Diagnostic(call.span, what)
    yield from rules.more(place, call, name)
