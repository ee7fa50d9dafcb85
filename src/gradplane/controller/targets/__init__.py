"""Targets: what differs between the switches we speak to. A file here is a target, by its name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from gradplane.controller.controller_errors import ControllerError


class Target(Protocol):
    """A module of this folder: `embedded`, ..."""

    DEVICE_ID: int
    """The device id when none is given."""
    BATCH: int
    """How many updates one write request may carry."""

    def device_config(self, config: bytes) -> bytes:
        """What goes into SetForwardingPipelineConfig, from what the caller has of the program."""


def names() -> list[str]:
    """All targets there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Target:
    """The target of that name. Raises ControllerError, with the names there are."""
    if name not in names():
        raise ControllerError(f"no target {name!r}: there is {', '.join(names())}")
    target: Target = importlib.import_module(f"{__name__}.{name}")
    return target
