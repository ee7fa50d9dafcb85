"""The v1model architecture, as BMv2's simple_switch runs it."""

from __future__ import annotations

from gradplane.switch.arch.architecture import Architecture, Implementation


def _load() -> Implementation:
    from gradplane.switch.arch.externs.direct_resources import AUTOMATIC
    from gradplane.switch.arch.v1model.externs import EXTERNS
    from gradplane.switch.arch.v1model.loading import PLACES, PREPARE, RULES
    from gradplane.switch.arch.v1model.native_pipeline import V1Traffic
    from gradplane.switch.arch.v1model.pipeline import V1Model
    from gradplane.switch.arch.v1model.queue_metadata import sees_queues

    return Implementation(
        EXTERNS, AUTOMATIC, PLACES, V1Model, V1Traffic, PREPARE, RULES, sees_queues
    )


ARCHITECTURE = Architecture(
    name="v1model",
    package="V1Switch",
    instances={
        "register": "register",
        "counter": "counter",
        "direct_counter": "direct_counter",
        "meter": "meter",
        "direct_meter": "direct_meter",
        "action_profile": "action_profile",
        "action_selector": "action_selector",
        "Checksum16": "checksum",
    },
    load=_load,
    ports=1 << 9,
    sessions=1 << 15,  # simple_switch's limit
    drops_by_port=True,
)
