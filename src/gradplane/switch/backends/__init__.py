"""Back ends: a compiled program in the form that another switch takes, a folder for each.

A folder `backends/NAME/` has two functions: `compile_text(arch, program, digests)` returns the text
that switch NAME loads, `p4info_for(p4info, program)` the P4Info that its controllers push. Its
MACROS are those that programs for this switch are compiled with. May import ir, runtime and arch.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping

from gradplane._p4runtime import p4i
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type

Backend = Callable[[str, ir.Program, Mapping[Type, str]], str]


def names() -> list[str]:
    """Return the names of all back ends."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Backend:
    """Return the back end of that name, one of `names()`."""
    found: Backend = importlib.import_module(f"{__name__}.{name}").compile_text

    def compile_text(arch: str, program: ir.Program, digests: Mapping[Type, str]) -> str:
        with internal_errors_reported(program.package.span):
            return found(arch, program, digests)

    return compile_text


def macros(name: str) -> Mapping[str, str]:
    """Return the macros that a back end's programs are compiled with, as other compilers do it."""
    found: Mapping[str, str] = importlib.import_module(f"{__name__}.{name}").MACROS
    return found


def p4info_for(name: str, info: p4i.P4Info, program: ir.Program) -> p4i.P4Info:
    """Return a program's P4Info as the switch of that name takes it, one of `names()`."""
    with internal_errors_reported(program.package.span):
        found: p4i.P4Info = importlib.import_module(f"{__name__}.{name}").p4info_for(info, program)
    return found
