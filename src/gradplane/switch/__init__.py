"""A P4_16 switch in Python: compiler, engines, match tables, P4Runtime, ports.

`Switch` runs a program; its errors are CompileError, TableError and SwitchError. The stages are
packages, in the order of docs/architecture.md's table. Imports no other room: the switch knows no
gradients.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradplane.switch.runtime.control_errors import SwitchError, TableError
    from gradplane.switch.runtime.meters import MeterConfig
    from gradplane.switch.source import CompileError
    from gradplane.switch.switch import Recirculated, Switch

__all__ = ["CompileError", "MeterConfig", "Recirculated", "Switch", "SwitchError", "TableError"]

# Loaded on first use, so that importing one part of the package does not import all others.
_HOMES = {
    "CompileError": "source",
    "MeterConfig": "runtime.meters",
    "Recirculated": "switch",
    "Switch": "switch",
    "SwitchError": "runtime.control_errors",
    "TableError": "runtime.control_errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
