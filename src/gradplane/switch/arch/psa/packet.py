"""A packet's paths through PSA, and the blocks of its two pipelines."""

from __future__ import annotations

from enum import IntEnum

from gradplane.switch.arch.blocks import Layout
from gradplane.switch.ir import nodes as ir

TIME_MASK = (1 << 64) - 1


class PacketPath(IntEnum):
    """The values of PSA_PacketPath_t."""

    NORMAL = 0
    NORMAL_UNICAST = 1
    NORMAL_MULTICAST = 2
    CLONE_I2E = 3
    CLONE_E2E = 4
    RESUBMIT = 5
    RECIRCULATE = 6


# The values that each block takes, in the order of its parameters. The metadata that a deparser
# sets ("to ...") are other values than those that a parser gets.
INGRESS = Layout({
    "ip": ("hdr", "meta", "parser istd", "resubmit", "recirculate"),
    "ig": ("hdr", "meta", "istd", "ostd"),
    "id": ("to clone_i2e", "to resubmit", "to normal", "hdr", "meta", "ostd"),
})  # fmt: skip
EGRESS = Layout({
    "ep": ("hdr", "meta", "parser istd", "normal", "clone_i2e", "clone_e2e"),
    "eg": ("hdr", "meta", "istd", "ostd"),
    "ed": ("to clone_e2e", "to recirculate", "hdr", "meta", "ostd", "deparser istd"),
})  # fmt: skip
BROUGHT = {
    PacketPath.RESUBMIT: "resubmit",
    PacketPath.RECIRCULATE: "recirculate",
    PacketPath.NORMAL_UNICAST: "normal",
    PacketPath.NORMAL_MULTICAST: "normal",
    PacketPath.CLONE_I2E: "clone_i2e",
    PacketPath.CLONE_E2E: "clone_e2e",
}
"""The value with the metadata from the previous pass, by the packet's path."""


def pipelines(program: ir.Program) -> tuple[ir.Package, ir.Package]:
    """Return the ingress and the egress pipeline."""
    ingress, egress = (program.package.args[name] for name in ("ingress", "egress"))
    assert isinstance(ingress, ir.Package) and isinstance(egress, ir.Package)
    return ingress, egress
