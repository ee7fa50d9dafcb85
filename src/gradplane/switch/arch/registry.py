"""Architectures by name and by the type of their package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.extern_call import refuse
from gradplane.switch.arch.model import Model
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import SwitchError


@dataclass(frozen=True, slots=True)
class Architecture:
    name: str
    package: str
    load: Callable[[], type[Model[Any]]]  # only the one that runs, for a quick start

    @property
    def model(self) -> type[Model[Any]]:
        return self.load()


def _v1model() -> type[Model[Any]]:
    from gradplane.switch.arch.v1model import V1Model

    return V1Model


def _psa() -> type[Model[Any]]:
    from gradplane.switch.arch.psa import PsaModel

    return PsaModel


V1MODEL = Architecture("v1model", "V1Switch", _v1model)
PSA = Architecture("psa", "PSA_Switch", _psa)
ARCHITECTURES = {a.name: a for a in (V1MODEL, PSA)}


def architecture(name: str | None, program: ir.Program) -> Architecture:
    """The architecture of a program's package.

    Raises CompileError if there is none for it, SwitchError if it is not the one that `name` asks
    for.
    """
    package = program.package.type
    if name is not None and name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise SwitchError(f"there is no architecture {name!r}; architectures: {known}")
    found = _of_package(package)
    if found is None:
        raise refuse(program.package.span, why_not(program))
    if name not in (None, found.name):
        wanted = ARCHITECTURES[str(name)].package
        raise SwitchError(
            f"architecture {name} runs a {wanted}, but the program's main is a {package}; leave"
            " the architecture out: the program's package says which it is"
        )
    return found


def why_not(program: ir.Program) -> str:
    """Why no architecture of ours runs a program; empty if one does."""
    package = program.package.type
    if _of_package(package) is not None:
        return ""
    if not package:
        return "the program has no package `main`"
    known = ", ".join(f"{a.package} ({a.name})" for a in ARCHITECTURES.values())
    return f"the program's main is a {package}; supported packages: {known}"


def natives_of(packages: Iterable[str]) -> frozenset[tuple[str, str]] | None:
    """The externs of the architecture for one of these types of packages
    (gradplane.switch.lower.instances); None if we have none for any."""
    found = next(filter(None, map(_of_package, packages)), None)
    return None if found is None else found.model.externs.natives


def _of_package(package: str) -> Architecture | None:
    return next((a for a in ARCHITECTURES.values() if a.package == package), None)
