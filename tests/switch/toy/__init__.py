"""The toy architecture: one parser, one control, one deparser."""

from __future__ import annotations

from gradplane.switch.arch.architecture import Architecture, Implementation
from gradplane.switch.ir.nodes import InstanceKind


def _load() -> Implementation:
    from gradplane.switch.arch.toy.externs import EXTERNS
    from gradplane.switch.arch.toy.pipeline import PLACES, ToyModel, ToyTraffic

    from gradplane.switch.machine.externs.direct_resources import ON_CALL

    return Implementation(EXTERNS, ON_CALL, PLACES, ToyModel, ToyTraffic)


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
