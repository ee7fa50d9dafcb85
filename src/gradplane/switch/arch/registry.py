"""The registry of architectures, by name and by the type of their package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from gradplane.switch import arch
from gradplane.switch.arch import load_checks
from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.ir import nodes as ir
from gradplane.switch.machine.path_texts import TEXT, PathText, path_text, text_lines
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import refuse


@cache
def architectures() -> Mapping[str, Architecture]:
    """Return the architectures by name: one for each folder here that has a record."""
    folders = (m.name for m in iter_modules(arch.__path__, f"{arch.__name__}.") if m.ispkg)
    records = (getattr(import_module(folder), "ARCHITECTURE", None) for folder in folders)
    return {record.name: record for record in records if record is not None}


def architecture(name: str | None, program: ir.Program) -> Architecture:
    """Return the architecture of a program's package.

    Raises CompileError if there is none for it, SwitchError if it is not the one that `name` asks
    for.
    """
    known = architectures()
    if name is not None and name not in known:
        names = ", ".join(known)
        raise SwitchError(f"there is no architecture {name!r}; architectures: {names}")
    found = of_package(program.package.package_type)
    if found is None:
        raise refuse(program.package.span, why_not(program))
    if name not in (None, found.name):
        wanted = known[str(name)].package
        raise SwitchError(
            f"architecture {name} runs a {wanted}, but the program's main is of type"
            f" {found.package};"
            " leave the architecture out: the program's package says which it is"
        )
    return found


def why_not(program: ir.Program) -> str:
    """Return why no architecture here runs a program; empty if one does."""
    package = program.package.package_type
    if of_package(package) is not None:
        return ""
    if not package.name:
        return "the program has no package `main`"
    for found in architectures().values():
        if found.package == package.name and not found.pkginfo:
            return (
                f"the program's own {package.name} has the parameters"
                f" {', '.join(package.parameters)}, that of {found.name} has"
                f" {', '.join(found.parameters)}"
            )
    known = ", ".join(f"{a.package} ({a.name})" for a in architectures().values())
    return f"the program's main is of type {package.name}; supported packages: {known}"


def of_packages(packages: Iterable[ir.PackageType]) -> Architecture | None:
    """Return the architecture for one of these types of packages; None if there is none for any."""
    return next(filter(None, map(of_package, packages)), None)


def of_package(package: ir.PackageType) -> Architecture | None:
    """Return the architecture whose programs instantiate this package; None if there is none."""
    return next((a for a in architectures().values() if a.declares(package)), None)


def packet_path(program: ir.Program) -> PathText | None:
    """Return the text of the packet path of a program's architecture; None if it has none."""
    folder = _path_folder(program)
    return None if folder is None else path_text(folder)


def path_lines(program: ir.Program) -> Mapping[str, Sequence[str]]:
    """Return the lines of that text, by the name of its file in traces; empty if there is none."""
    folder = _path_folder(program)
    return {} if folder is None else text_lines(folder)


def _path_folder(program: ir.Program) -> Path | None:
    found = of_package(program.package.package_type)
    folder = None if found is None else Path(arch.__path__[0]) / found.name
    return folder if folder is not None and (folder / TEXT).exists() else None


def device_facts(program: ir.Program) -> DeviceFacts | None:
    """Return the facts of a program's chip; None if its architecture is not a chip's."""
    found = of_package(program.package.package_type)
    return None if found is None else found.implementation.device(program)


# -- several programs on one device ---------------------------------------------------------------


def program_name(program: ir.Program) -> str:
    """Return the name of a program beside others: that of its file, unless it has another."""
    return program.label.removesuffix(".") or Path(program.file or program.package.span.file).stem


def combined(programs: Sequence[ir.Program]) -> ir.Program:
    """Return the program of a device that runs these, by their names; one alone is itself.

    Their objects are renamed. Raises CompileError, and SwitchError where no device can run them.
    """
    if len(programs) == 1:
        (alone,) = programs
        return replace(alone, pipe_scopes={}) if alone.label else alone
    named = {program_name(program): program for program in programs}
    if len(named) < len(programs):
        names = ", ".join(map(program_name, programs))
        raise SwitchError(f"programs of one device are known by their files' names: {names}")
    kinds = {a.name: a for a in (architecture(None, program) for program in programs)}
    found = next(iter(kinds.values()))
    if len(kinds) > 1 or found.implementation.combine is None:
        what = "only the pipes of a chip (tna) run several"
        raise SwitchError(f"{len(programs)} programs are given, for {', '.join(kinds)}: {what}")
    for program in programs:
        load_checks.prepare(program, found)
    return found.implementation.combine(named)
