"""The pipelines that pipes run: one for all pipes, or one for each of several groups of them.

By default they are placed as the chip's compiler writes it into the driver's configuration: with
two, pipeA has pipes 0 and 2 of a Tofino 1, and 0 and 1 of a Tofino 2.

Several programs on one chip are one whose pipelines are those of all, since packets cross from a
pipe to any other on their way to egress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.arch.tna.chips import LOCAL_PORTS, PIPE_BITS, TOFINO2, Chip, chip_of
from gradplane.switch.arch.tna.parser_choices import parser_names
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.runtime.control_errors import SwitchError

_NONE = -1


def pipelines(program: ir.Program) -> list[ir.Package]:
    """Return the different pipelines of a program, in order; a single one is for all pipes."""
    found = [program.package.args.get(f"pipe{i}") for i in range(4)]
    return list(dict.fromkeys(p for p in found if isinstance(p, ir.Package)))


def pipeline_numbers(program: ir.Program) -> tuple[int, ...]:
    """Return the number of the pipeline that each pipe runs, -1 for those of another program."""
    chip, names = chip_of(program), [package.name for package in pipelines(program)]
    if not program.pipe_scopes:
        return tuple(_by_default(chip, len(names), pipe) for pipe in range(chip.pipes))
    owners = {pipe: name for name, own in program.pipe_scopes.items() for pipe in own}
    return tuple(_NONE if pipe not in owners else names.index(owners[pipe])
                 for pipe in range(chip.pipes))  # fmt: skip


def _by_default(chip: Chip, count: int, pipe: int) -> int:
    """Return the pipeline of a pipe; a pipe that is left over runs one of the first."""
    together = chip.pipes // count if chip is TOFINO2 else 1
    return pipe // together % count


def place(program: ir.Program, scopes: Mapping[str, Sequence[int]]) -> ir.Program:
    """Return the program with its pipelines on other pipes. Raises SwitchError unless scopes have
    each pipeline and each pipe once. One of several programs stands for its only pipeline."""
    chip, names = chip_of(program), [package.name for package in pipelines(program)]
    only = {n: p.name for n, part in program.parts.items() for p in pipelines(part)
            if len(pipelines(part)) == 1}  # fmt: skip
    scopes = {only.get(name, name): pipes for name, pipes in scopes.items()}
    for name in scopes:
        if name not in names:
            known = ", ".join(names)
            raise SwitchError(f"pipe scopes: there is no pipeline {name!r}; pipelines: {known}")
    missing = [name for name in names if not scopes.get(name)]
    if missing:
        raise SwitchError(f"pipe scopes: pipeline {missing[0]} has no pipe")
    given = sorted(pipe for own in scopes.values() for pipe in own)
    if given != list(range(chip.pipes)):
        what = f"each of the pipes 0 to {chip.pipes - 1} must be given once"
        raise SwitchError(f"pipe scopes: {what}, not {', '.join(map(str, given))}")
    return _in_pipes(program, {n: tuple(sorted(own)) for n, own in scopes.items()})


def _in_pipes(program: ir.Program, scopes: Mapping[str, tuple[int, ...]]) -> ir.Program:
    """Return the program, and its parts, with these scopes of the pipelines."""
    parts = {
        name: replace(part, pipe_scopes={p.name: scopes[p.name] for p in pipelines(part)})
        for name, part in program.parts.items()
    }
    return replace(program, pipe_scopes=scopes, parts=parts)


# -- several programs -----------------------------------------------------------------------------


def combine(programs: Mapping[str, ir.Program]) -> ir.Program:
    """Return one program with the pipelines of several, given by name, each of which has been
    prepared. Their objects are renamed. Raises SwitchError where a chip cannot run all of them."""
    parts = list(programs.values())
    chip, *others = (chip_of(part) for part in parts)
    names = ", ".join(programs)
    if any(other is not chip for other in others):
        raise SwitchError(f"{names}: the programs are for different chips")
    found = [pipeline for part in parts for pipeline in pipelines(part)]
    if len(found) > chip.pipes:
        raise SwitchError(f"{names}: {len(found)} pipelines for {chip.pipes} pipes")
    for name, part in programs.items():
        _label(part, f"{name}.")
    _check_translations(programs)
    first = parts[0]
    package = replace(first.package, args={f"pipe{i}": p for i, p in enumerate(found)})
    joined: dict[str, Any] = {kind: _joined([getattr(p, kind) for p in parts]) for kind in _JOINED}
    made = replace(first, package=package, parts=dict(programs), label="", pipe_scopes={}, **joined)
    owners = [found[number].name for number in pipeline_numbers(made)]
    scopes = {p.name: tuple(i for i, own in enumerate(owners) if own == p.name) for p in found}
    return _in_pipes(made, scopes)


_OBJECTS = ("tables", "actions", "externs", "value_sets", "direct_actions")
_JOINED = (
    *_OBJECTS, "errors", "types", "enums", "controller_headers", "user_extern_calls", "prepared",
    "called_actions", "in_hash",
)  # fmt: skip


def _joined(values: Sequence[Any]) -> Any:
    """Return what several programs have: the elements of lists once, the first of each name of
    dictionaries, and what all sets have."""
    if isinstance(values[0], set):
        return set.intersection(*values)
    if isinstance(values[0], dict):
        return {name: one for value in reversed(values) for name, one in value.items()}
    return list(dict.fromkeys(chain.from_iterable(values)))


def _label(program: ir.Program, label: str) -> None:
    """Let the names of a program's objects begin with its own, in place; of a program with a single
    pipeline, with that one's, too, as those of several do."""
    if program.label == label:
        return  # it has run beside others before
    own = pipelines(program)
    inner = label if len(own) > 1 else f"{label}{own[0].name}."
    blocks = [b for p in own for b in p.args.values() if isinstance(b, ir.Parser | ir.Control)]
    kinds = (getattr(program, kind) for kind in _OBJECTS)
    for one in dict.fromkeys([*blocks, *chain.from_iterable(kinds)]):
        one.name = inner + one.name
    for pipeline in own:
        pipeline.name = label + pipeline.name
    program.label = label


def _check_translations(programs: Mapping[str, ir.Program]) -> None:
    """Raise SwitchError where two programs have a type of one name that P4Runtime's controllers see
    differently."""
    found: dict[str, ir.TypeInfo] = {}
    for program, part in programs.items():
        for name, declared in part.types.items():
            if found.setdefault(name, declared).translation != declared.translation:
                what = f"{program}: its type {name} is translated as another program's is not"
                raise SwitchError(f"{what}: give it another name")


# -- what control protocols configure: pipes, ports, and their metadata -------------------------


def device(program: ir.Program) -> DeviceFacts:
    """Return the facts of the chip that a TNA program is for."""
    chip, numbers = chip_of(program), pipeline_numbers(program)
    return DeviceFacts(
        chip.family, chip.sku, chip.pipes, chip.stages, chip.pipes * LOCAL_PORTS, PIPE_BITS,
        chip.cpu_port, chip.recirculation, chip.port_metadata,
        tuple(
            _pipeline(package, chip, tuple(pipe for pipe, at in enumerate(numbers) if at == number))
            for number, package in enumerate(pipelines(program))
        ),
        program.label,
    )  # fmt: skip


def _pipeline(package: ir.Package, chip: Chip, pipes: tuple[int, ...]) -> PipelineFacts:
    parser = package.parser("ingress_parser")
    own = [p.var.name for p in parser.params
           if isinstance(p.var.type, Fields)
           and p.var.type.name == "ingress_intrinsic_metadata_t"]  # fmt: skip
    key = own[0] if own else "ig_intr_md"
    parser_name = parser.name.removeprefix(f"{package.name}.")
    parsers = (package.parser(name) for name in parser_names(package, "ingress_parser"))
    types = (port_metadata_type(parser, chip) for parser in parsers)
    controls = {gress: package.control(gress) for gress in ("ingress", "egress")}
    metadata = next(filter(None, types), None)
    return PipelineFacts(package.name, parser_name, key, metadata, controls, pipes)


def port_metadata_type(parser: ir.Parser, chip: Chip) -> Fields | None:
    """Return the type that a parser reads its port's metadata as; None if it skips them.

    Preparation makes a look-ahead and an advance of `port_metadata_unpack`.
    """
    for before, after in _neighbours(parser):
        if isinstance(before, ir.CallExtern) and before.name == "port_metadata_unpack":
            return _type_of(before.result)
        skipped = isinstance(after, ir.Advance) and isinstance(after.bits, ir.Const)
        if isinstance(before, ir.Lookahead) and skipped:
            assert isinstance(after, ir.Advance) and isinstance(after.bits, ir.Const)
            if after.bits.value == 8 * chip.port_metadata:
                return _type_of(before.target)
    return None


def _neighbours(parser: ir.Parser) -> Iterator[tuple[ir.Stmt, ir.Stmt | None]]:
    for state in parser.states.values():
        yield from zip(state.body, [*state.body, None][1:], strict=True)


def _type_of(place: ir.Expr | None) -> Fields | None:
    return place.type if place is not None and isinstance(place.type, Fields) else None
