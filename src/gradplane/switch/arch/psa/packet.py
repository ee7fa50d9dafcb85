"""A packet on its way through PSA, and what the blocks of its two pipelines work on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from gradplane.switch.arch.model import SwitchPacket
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.runtime.entries import Count
from gradplane.switch.runtime.meters import MeterCell

PORT_RECIRCULATE = 0xFFFF_FFFA
PORT_CPU = 0xFFFF_FFFD
SESSION_TO_CPU = 0
PORT_BITS = 32
TIME_MASK = (1 << 64) - 1


class PacketPath(IntEnum):
    """PSA_PacketPath_t."""

    NORMAL = 0
    NORMAL_UNICAST = 1
    NORMAL_MULTICAST = 2
    CLONE_I2E = 3
    CLONE_E2E = 4
    RESUBMIT = 5
    RECIRCULATE = 6


# The values that each block takes, in the order of its parameters. What a deparser hands on
# ("to ...") is another value than what a parser was handed.
INGRESS: dict[str, tuple[str, ...]] = {
    "ip": ("hdr", "meta", "parser istd", "resubmit", "recirculate"),
    "ig": ("hdr", "meta", "istd", "ostd"),
    "id": ("to clone_i2e", "to resubmit", "to normal", "hdr", "meta", "ostd"),
}
EGRESS: dict[str, tuple[str, ...]] = {
    "ep": ("hdr", "meta", "parser istd", "normal", "clone_i2e", "clone_e2e"),
    "eg": ("hdr", "meta", "istd", "ostd"),
    "ed": ("to clone_e2e", "to recirculate", "hdr", "meta", "ostd", "deparser istd"),
}
BROUGHT = {
    PacketPath.RESUBMIT: "resubmit",
    PacketPath.RECIRCULATE: "recirculate",
    PacketPath.NORMAL_UNICAST: "normal",
    PacketPath.NORMAL_MULTICAST: "normal",
    PacketPath.CLONE_I2E: "clone_i2e",
    PacketPath.CLONE_E2E: "clone_e2e",
}
"""The value that a packet brings from the pass before, by its path."""


def pipelines(program: ir.Program) -> tuple[ir.Package, ir.Package]:
    """The ingress and the egress pipeline."""
    ingress, egress = (program.package.args[name] for name in ("ingress", "egress"))
    assert isinstance(ingress, ir.Package) and isinstance(egress, ir.Package)
    return ingress, egress


def value_types(package: ir.Package, blocks: Mapping[str, tuple[str, ...]]) -> dict[str, Type]:
    """The types of a pipeline's values, by name."""
    types = {}
    for name, values in blocks.items():
        block = package.args[name]
        assert isinstance(block, ir.Parser | ir.Control), block
        for value, param in zip(values, block.params, strict=True):
            types[value] = param.var.type
    return types


class PsaPacket(SwitchPacket):
    """`found`: by the name of a direct counter or meter, that of the entry the table found last."""

    __slots__ = ("found",)

    def __init__(self, data: bytes, events: list[Any] | None = None) -> None:
        super().__init__(data, events)
        self.found: dict[str, Count | MeterCell] = {}
