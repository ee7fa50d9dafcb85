"""Targets: the differences between the kinds of switch. Each module here is a target of its
name.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from gradplane.controller.controller_errors import ControllerError


class Target(Protocol):
    """The interface of a module of this folder: `embedded`, ..."""

    DEVICE_ID: int
    """The default device id."""
    BATCH: int
    """The maximum number of updates in one write request."""

    def device_config(self, config: bytes) -> bytes:
        """Convert a compiled program to the device config for SetForwardingPipelineConfig."""


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Target:
    """Return the target of that name; raise ControllerError with the known names."""
    if name not in names():
        raise ControllerError(f"no target {name!r}: targets: {', '.join(names())}")
    target: Target = importlib.import_module(f"{__name__}.{name}")
    return target
