"""The Portable Switch Architecture (PSA specification 1.2)."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.arch import portable
from gradplane.switch.arch.architecture import Implementation
from gradplane.switch.ir.nodes import InstanceKind

_PLACES = {
    "ingress.ip": "the ingress parser",
    "ingress.ig": "the ingress control",
    "ingress.id": "the ingress deparser",
    "egress.ep": "the egress parser",
    "egress.eg": "the egress control",
    "egress.ed": "the egress deparser",
}
_ASKED_IN = {
    "psa_clone_i2e": "ingress.id", "psa_resubmit": "ingress.id", "psa_normal": "ingress.id",
    "psa_clone_e2e": "egress.ed", "psa_recirculate": "egress.ed",
}  # fmt: skip
"""The externs that ask what becomes of the packet, whose bodies are in path.p4; and the block that
may call each."""


def _load() -> Implementation:
    from gradplane.switch.machine.externs import messages
    from gradplane.switch.machine.text_externs import TextBody

    folder = Path(__file__).parent
    asking = {
        ("", name): TextBody(folder, name).extern().within(place)
        for name, place in _ASKED_IN.items()
    }
    asserting = {("", name): messages.ASSERT for name in ("assert", "assume")}
    return portable.implementation(folder, _PLACES, {**asking, **asserting}, ["ingress.id"])


ARCHITECTURE = portable.record(
    "psa",
    "PSA_Switch",
    ("ingress", "pre", "egress", "bqe"),
    _load,
    {
        "PacketReplicationEngine": InstanceKind("packet_replication_engine"),
        "BufferingQueueingEngine": InstanceKind("buffering_queueing_engine"),
    },
)
