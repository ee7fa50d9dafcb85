"""Back ends: a compiled program in the form that another switch takes, a folder for each.

A folder `backends/NAME/` has a function `compile_text(arch, program, digests)`, which returns the
text that switch NAME loads, and MACROS, those that programs for this switch are compiled with. May
import ir, runtime and arch.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type

Backend = Callable[[str, ir.Program, Mapping[Type, str]], str]


def names() -> list[str]:
    """Return the names of all back ends."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Backend:
    """Return the back end of that name, one of `names()`."""
    found: Backend = importlib.import_module(f"{__name__}.{name}").compile_text
    return found


def macros(name: str) -> Mapping[str, str]:
    """Return the macros that a back end's programs are compiled with, as other compilers do it."""
    found: Mapping[str, str] = importlib.import_module(f"{__name__}.{name}").MACROS
    return found
