"""Preparing and checking a program when it is loaded, whatever its architecture: externs that are
missing, calls in the wrong place, tables that no engine can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradplane.switch.arch.architecture import Architecture, Prepare
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.ir.walk import blocks, nested, same_value, statements
from gradplane.switch.source import CompileError, Diagnostic, source_lines

MAX_CELLS = 1 << 26
_ARRAYS = ("register", "counter", "meter")


def prepare(program: ir.Program, architecture: Architecture) -> None:
    """Prepare a program in place; raises CompileError for what it may not use."""
    made = architecture.implementation
    found: list[Diagnostic] = []
    with internal_errors_reported(program.package.span):
        for step in made.prepare:
            found += run_step(step, program)
        found += problems(program, architecture)
        for rule in made.rules:
            found += rule(program)
    if found:
        raise CompileError(found, source_lines([d.span for d in found]))


def run_step(step: Prepare, program: ir.Program) -> list[Diagnostic]:
    """Run one step of a program's preparation. The tests verify the IR after each."""
    return list(step(program))


def problems(program: ir.Program, architecture: Architecture) -> list[Diagnostic]:
    """Return all that is wrong with a program's instances, tables and calls."""
    return [
        *_instances(program, architecture),
        *_tables(program),
        *_calls(program, architecture),
        *_methods(program, architecture),
    ]


def numbers_wanted(
    call: ir.CallExtern, name: str, positions: Iterable[int]
) -> Iterable[Diagnostic]:
    """Refuse arguments at these positions that are not numbers; `name`: of the extern."""
    for position in positions:
        t = call.args[position].type
        if not isinstance(t, Bits | Bool):
            what = f"argument {position + 1} of {name} must be bit<W>, int<W> or bool, not {t}"
            yield Diagnostic(call.span, what)


def full_name(call: ir.CallExtern) -> str:
    """Return the name of the callee: TYPE.METHOD, or a function's."""
    return f"{call.instance.type}.{call.name}" if call.instance else call.name


def extern_calls(program: ir.Program) -> Iterable[tuple[str, ir.CallExtern]]:
    """Return the extern calls of a program's blocks, each with the block's package parameter."""
    for place, block in blocks(program.package):
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern):
                yield place, stmt


def direct_calls(program: ir.Program, properties: Mapping[str, str]) -> Iterable[Diagnostic]:
    """Refuse calls of direct counters, meters and registers outside the actions of their tables.

    properties: the table's property for each kind of instance."""
    callers: dict[ir.CallExtern, list[ir.Table]] = {}
    for table in program.tables:
        for choice in table.actions:
            for stmt in nested(choice.action.body):
                if isinstance(stmt, ir.CallExtern):
                    callers.setdefault(stmt, []).append(table)
    for _, call in extern_calls(program):
        instance = call.instance
        if instance is None or instance.kind not in properties:
            continue
        tables = callers.get(call, [])
        if not tables or any(
            instance not in (t.counter, t.meter, t.register, t.filter) for t in tables
        ):
            what = f"{full_name(call)} may be called in an action of the table that"
            hint = f"the table has the property {properties[instance.kind]} = {instance.name}"
            yield Diagnostic(call.span, f"{what} owns {instance.name} only", hint=hint)


def _instances(program: ir.Program, architecture: Architecture) -> Iterable[Diagnostic]:
    for instance in program.externs:
        if instance.user_extern is None and instance.type not in architecture.instances:
            hint = f"implemented: {', '.join(sorted(architecture.instances))}"
            what = f"extern {instance.type} is not implemented by {architecture.name}"
            yield Diagnostic(instance.span, what, hint=hint)
        elif instance.kind == "register":
            cell = instance.type_args[0]
            if not isinstance(cell, Bits | Bool):
                what = f"{instance.type} of {cell}: a cell must be bit<W>, int<W> or bool"
                hint = "or a struct of those; a header's validity has no place in a cell"
                yield Diagnostic(instance.span, what, hint=hint)
        size = instance.number("size", 0) if instance.kind in _ARRAYS else 0
        if size > MAX_CELLS:
            what = f"{instance.name} has {size} cells: {MAX_CELLS} is the most there can be"
            yield Diagnostic(instance.span, what)


def _tables(program: ir.Program) -> Iterable[Diagnostic]:
    for table in program.tables:
        kinds = [key.match_kind for key in table.keys]
        if kinds.count("lpm") > 1:
            hint = "match the others exact or ternary"
            yield Diagnostic(table.span, f"table {table.name} has more than one lpm key", hint=hint)
        shared = table.implementation
        if "selector" in kinds and shared is not None and shared.kind != "action_selector":
            hint = "implementation = action_selector(...);"
            what = f"table {table.name} has a key of kind selector and no action selector"
            yield Diagnostic(table.span, what, hint=hint)
    yield from _shared(program)


def _shared(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse tables that share a selector and give its hash different inputs."""
    first: dict[ir.ExternInstance, ir.Table] = {}
    for table in program.tables:
        if table.implementation is None:
            continue
        other = first.setdefault(table.implementation, table)
        mine, others = _selector_keys(table), _selector_keys(other)
        if len(mine) != len(others) or not all(map(same_value, mine, others)):
            where = f"shares {table.implementation.name} with table {other.name}"
            problem = f"table {table.name} {where}, but not its keys of kind selector"
            read = [", ".join(map(expression_text, keys)) or "none" for keys in (mine, others)]
            hint = f"table {table.name} has {read[0]}; table {other.name} has {read[1]}"
            yield Diagnostic(table.span, problem, hint=hint)


def _selector_keys(table: ir.Table) -> list[ir.Expr]:
    return [key.expr for key in table.keys if key.match_kind == "selector"]


def _calls(program: ir.Program, architecture: Architecture) -> Iterable[Diagnostic]:
    externs, places = architecture.implementation.externs, architecture.implementation.places
    for place, call in extern_calls(program):
        owner, name = call.instance.type if call.instance else "", full_name(call)
        extern = externs.get((owner, call.name))
        if extern is None:
            yield from _missing(call, architecture)
            continue
        if extern.places is not None and place not in extern.places:
            allowed = " and ".join(places[p] for p in places if p in extern.places)
            what = f"{name} may be called in {allowed} only, not in {places[place]}"
            yield Diagnostic(call.span, what)
        present = (position for position in extern.numbers if position < len(call.args))
        yield from numbers_wanted(call, name, present)


def _methods(program: ir.Program, architecture: Architecture) -> Iterable[Diagnostic]:
    """Return the calls in abstract methods of user-defined externs, which see no packet."""
    for method, call in _method_calls(program):
        owner, name = call.instance.type if call.instance else "", full_name(call)
        extern = architecture.implementation.externs.get((owner, call.name))
        if extern is None:
            yield from _missing(call, architecture)
        elif extern.needs_packet:
            what = f"{name} may not be called in method {method}, which sees no packet"
            yield Diagnostic(call.span, what)
        else:
            yield from numbers_wanted(call, name, extern.numbers)


def _method_calls(program: ir.Program) -> Iterable[tuple[str, ir.CallExtern]]:
    for instance in program.externs:
        for method in instance.user_extern.methods if instance.user_extern is not None else ():
            for stmt in nested(method.body):
                if isinstance(stmt, ir.CallExtern):
                    yield method.name, stmt


def _missing(call: ir.CallExtern, architecture: Architecture) -> Iterable[Diagnostic]:
    """Yield an error for a call that is not implemented, unless its instance has one."""
    if call.instance is None or call.instance.type in architecture.instances:
        what = f"extern {full_name(call)} is not implemented by {architecture.name}"
        yield Diagnostic(call.span, what)
