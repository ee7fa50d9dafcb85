"""A packet on its way through v1model, and the blocks it passes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from gradplane.switch.arch.blocks import Layout
from gradplane.switch.arch.model import SwitchPacket

PIPELINE = Layout(
    {
        "p": ("hdr", "meta", "standard"),
        "vr": ("hdr", "meta"),
        "ig": ("hdr", "meta", "standard"),
        "eg": ("hdr", "meta", "standard"),
        "ck": ("hdr", "meta"),
        "dep": ("hdr",),
    }
)
COPYING = ("ig", "eg")  # blocks that may clone, resubmit, recirculate


class InstanceType(IntEnum):
    """The values of standard_metadata.instance_type, as simple_switch numbers them."""

    NORMAL = 0
    INGRESS_CLONE = 1
    EGRESS_CLONE = 2
    RECIRCULATED = 4
    REPLICATED = 5
    RESUBMITTED = 6


class V1Packet(SwitchPacket):
    """A packet with the effects that the traffic manager carries out; None: not called.

    clone: (session, field list) of the last call. resubmit, recirculate: the last call's field
    list. truncate: the most bytes that leave.
    """

    __slots__ = ("clone", "resubmit", "recirculate", "truncate", "checksum_error")

    def __init__(self, data: bytes, events: list[Any] | None = None) -> None:
        super().__init__(data, events)
        self.clone: tuple[int, int] | None = None
        self.resubmit: int | None = None
        self.recirculate: int | None = None
        self.truncate: int | None = None
        self.checksum_error = False

    def copy(self) -> V1Packet:
        """Return a packet with the same input and parser position, to pass egress once more."""
        twin = V1Packet(self.data, self.events)
        twin.position = self.position
        twin.length = self.length
        twin.grown = self.grown
        twin.truncate = self.truncate
        return twin
