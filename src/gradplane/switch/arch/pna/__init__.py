"""The Portable NIC Architecture, as far as packets do not write tables: `add_entry` and expire
times are missing."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.arch.architecture import Architecture, Implementation
from gradplane.switch.ir.nodes import InstanceKind
from gradplane.switch.runtime.replicas import CloneSession, Replica

PORT_CPU = 0xFFFF_FFFD
SESSION_TO_CPU = 0


def _load() -> Implementation:
    from gradplane.switch.arch.pna.externs import EXTERNS
    from gradplane.switch.arch.pna.loading import PLACES, PREPARE, RULES
    from gradplane.switch.machine.externs.direct_resources import ON_CALL
    from gradplane.switch.machine.primitives import text_path

    path = text_path(Path(__file__).parent)
    return Implementation(EXTERNS, ON_CALL, PLACES, path, prepare=PREPARE, rules=RULES)


ARCHITECTURE = Architecture(
    name="pna",
    package="PNA_NIC",
    parameters=("main_parser", "pre_control", "main_control", "main_deparser"),
    instances={
        "Register": InstanceKind("register", ("size", "initial")),
        "Counter": InstanceKind("counter", ("size", "unit")),
        "DirectCounter": InstanceKind("direct_counter", ("unit",)),
        "Meter": InstanceKind("meter", ("size", "unit")),
        "DirectMeter": InstanceKind("direct_meter", ("unit",)),
        "ActionProfile": InstanceKind("action_profile", ("size",)),
        "ActionSelector": InstanceKind("action_selector", ("algorithm", "size", "width")),
        "Digest": InstanceKind("digest"),
        "Random": InstanceKind("random", ("low", "high")),
        "Hash": InstanceKind("hash", ("algorithm",)),
        "Checksum": InstanceKind("checksum", ("algorithm",)),
        "InternetChecksum": InstanceKind("internet_checksum"),
    },
    load=_load,
    ports=1 << 32,
    cpu_port=PORT_CPU,
    clone_sessions={SESSION_TO_CPU: CloneSession([Replica(PORT_CPU)])},
)
