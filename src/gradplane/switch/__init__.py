"""A P4_16 switch in Python: compiler, engines, match tables, P4Runtime, ports.

`Switch` runs a program; its errors are CompileError, TableError and SwitchError. The stages are
packages, in the order of docs/architecture.md's table. Imports no other room: the switch knows no
gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names

if TYPE_CHECKING:
    from gradplane.switch.daemon.clients import traces
    from gradplane.switch.runtime.control_errors import SwitchError, TableError
    from gradplane.switch.runtime.meters import MeterConfig
    from gradplane.switch.source import CompileError
    from gradplane.switch.switch import Recirculated, Switch

__all__ = [
    "CompileError",
    "MeterConfig",
    "Recirculated",
    "Switch",
    "SwitchError",
    "TableError",
    "traces",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CompileError": "source",
        "MeterConfig": "runtime.meters",
        "Recirculated": "switch",
        "Switch": "switch",
        "SwitchError": "runtime.control_errors",
        "TableError": "runtime.control_errors",
        "traces": "daemon.clients",
    },
)
