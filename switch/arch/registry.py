"""Architectures by name and by the type of their package."""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.arch.v1model import V1Model
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.errors import SwitchError


@dataclass(frozen=True, slots=True)
class Architecture:
    name: str
    package: str
    model: type[V1Model]


ARCHITECTURES = {a.name: a for a in (Architecture("v1model", "V1Switch", V1Model),)}


def architecture(name: str, program: ir.Program) -> Architecture:
    """The named architecture; raises SwitchError if there is none or the program is another's."""
    found = ARCHITECTURES.get(name)
    if found is None:
        known = ", ".join(ARCHITECTURES)
        raise SwitchError(f"there is no architecture {name!r}; architectures: {known}")
    if program.package.type != found.package:
        raise SwitchError(
            f"architecture {name} runs a {found.package}, but the program's main is a "
            f"{program.package.type}"
        )
    return found
