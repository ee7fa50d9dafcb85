"""The toy architecture: one parser, one control, one deparser."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.arch.architecture import Architecture, Implementation
from gradplane.switch.ir.nodes import InstanceKind

PLACES = {"parse": "the parser", "work": "the control", "deparse": "the deparser"}


def _load() -> Implementation:
    from gradplane.switch.arch.toy.externs import EXTERNS

    from gradplane.switch.machine.externs.direct_resources import ON_CALL
    from gradplane.switch.machine.primitives import text_path

    return Implementation(EXTERNS, ON_CALL, PLACES, text_path(Path(__file__).parent))


ARCHITECTURE = Architecture(
    name="toy",
    package="Toy",
    instances={
        "Tally": InstanceKind("counter", ("size", "unit")),
        "Cells": InstanceKind("register", ("size",)),
    },
    load=_load,
    ports=1 << 8,
)
