"""The pipelines that pipes run: one for all pipes, or one for each of several groups of them.

By default they are placed as the chip's compiler writes it into the driver's configuration: with
two, pipeA has pipes 0 and 2 of a Tofino 1, and 0 and 1 of a Tofino 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gradplane.switch.arch.tna.chips import TOFINO2, Chip, chip_of
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import SwitchError


def pipelines(program: ir.Program) -> list[ir.Package]:
    """Return the different pipelines of a program, in order; a single one is for all pipes."""
    found = [program.package.args.get(f"pipe{i}") for i in range(4)]
    return list(dict.fromkeys(p for p in found if isinstance(p, ir.Package)))


def pipeline_numbers(program: ir.Program) -> tuple[int, ...]:
    """Return the number of the pipeline that each pipe runs."""
    chip, names = chip_of(program), [package.name for package in pipelines(program)]
    if not program.pipe_scopes:
        return tuple(_by_default(chip, len(names), pipe) for pipe in range(chip.pipes))
    owners = {pipe: name for name, own in program.pipe_scopes.items() for pipe in own}
    return tuple(names.index(owners[pipe]) for pipe in range(chip.pipes))


def _by_default(chip: Chip, count: int, pipe: int) -> int:
    """Return the pipeline of a pipe; a pipe that is left over runs one of the first."""
    together = chip.pipes // count if chip is TOFINO2 else 1
    return pipe // together % count


def place(program: ir.Program, scopes: Mapping[str, Sequence[int]]) -> ir.Program:
    """Return the program with its pipelines on other pipes. Raises SwitchError unless scopes have
    each pipeline and each pipe once."""
    chip, names = chip_of(program), [package.name for package in pipelines(program)]
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
    return replace(program, pipe_scopes={n: tuple(sorted(own)) for n, own in scopes.items()})
