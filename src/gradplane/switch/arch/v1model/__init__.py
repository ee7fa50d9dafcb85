"""The v1model architecture, as BMv2's simple_switch runs it."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.arch.architecture import Architecture, Implementation
from gradplane.switch.ir.nodes import InstanceKind


def _load() -> Implementation:
    from gradplane.switch.arch.v1model.externs import EXTERNS
    from gradplane.switch.arch.v1model.field_lists import expansions
    from gradplane.switch.arch.v1model.loading import PLACES, PREPARE, RULES, sees_queues
    from gradplane.switch.machine.externs.direct_resources import AUTOMATIC
    from gradplane.switch.machine.primitives import text_path

    path = text_path(Path(__file__).parent, expansions)
    return Implementation(
        EXTERNS, AUTOMATIC, PLACES, path, prepare=PREPARE, rules=RULES, sees_queues=sees_queues
    )


ARCHITECTURE = Architecture(
    name="v1model",
    package="V1Switch",
    parameters=("p", "vr", "ig", "eg", "ck", "dep"),
    instances={
        "register": InstanceKind("register", ("size",)),
        "counter": InstanceKind("counter", ("size", "unit")),
        "direct_counter": InstanceKind("direct_counter", ("unit",)),
        "meter": InstanceKind("meter", ("size", "unit")),
        "direct_meter": InstanceKind("direct_meter", ("unit",)),
        "action_profile": InstanceKind("action_profile", ("size",)),
        "action_selector": InstanceKind("action_selector", ("algorithm", "size", "width")),
        "Checksum16": InstanceKind("checksum"),
    },
    load=_load,
    ports=1 << 9,
    sessions=1 << 15,  # simple_switch's limit
    drops_by_port=True,
)
