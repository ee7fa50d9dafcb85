"""The properties of each chip, and the headers that it puts in front of packets."""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Fields, Header
from gradplane.switch.ir.walk import blocks

PIPE_BITS = 7
"""A port number is a pipe's number above so many bits."""
LOCAL_PORTS = 1 << PIPE_BITS


def _header(name: str, *fields: tuple[str, int]) -> Header:
    return Header(name, tuple(Field(field, Bits(width)) for field, width in fields))


INGRESS_HEADER = _header(
    "ingress_intrinsic_metadata_t",
    ("resubmit_flag", 1), ("_pad1", 1), ("packet_version", 2), ("_pad2", 3),
    ("ingress_port", 9), ("ingress_mac_tstamp", 48),
)  # fmt: skip


def _egress_header(time_pad: int, queue_bits: int, end_pad: int) -> Header:
    """Return the header before packets in egress; time_pad: bits before each time, which fills the
    rest of 32."""
    pads = [("_pad3", time_pad)] if time_pad else []
    more = [("_pad6", time_pad)] if time_pad else []
    end = [("_pad11", end_pad)] if end_pad else []
    return _header(
        "egress_intrinsic_metadata_t",
        ("_pad0", 7), ("egress_port", 9), ("_pad1", 5), ("enq_qdepth", 19),
        ("_pad2", 6), ("enq_congest_stat", 2), *pads, ("enq_tstamp", 32 - time_pad),
        ("_pad4", 5), ("deq_qdepth", 19), ("_pad5", 6), ("deq_congest_stat", 2),
        ("app_pool_congest_stat", 8), *more, ("deq_timedelta", 32 - time_pad),
        ("egress_rid", 16), ("_pad7", 7), ("egress_rid_first", 1),
        ("_pad8", 8 - queue_bits), ("egress_qid", queue_bits), ("_pad9", 5), ("egress_cos", 3),
        ("_pad10", 7), ("deflection_flag", 1), ("pkt_length", 16), *end,
    )  # fmt: skip


@dataclass(frozen=True)
class Chip:
    """A generation of the chip.

    name: of its architecture. family, sku: as the chip's driver names it. pipes, stages: how many.
    port_metadata: bytes between the ingress header and the packet.
    recirculation: the ports of each pipe, by their number in it, that lead back to ingress.
    cpu_port: where copies to the CPU leave unless the user chooses a port. most_mirrored: bytes of
    a mirror header. alu_bits: of the largest of a stateful ALU's two numbers. comparisons: how many
    such an ALU makes.
    """

    name: str
    family: str
    sku: str
    pipes: int
    stages: int
    port_metadata: int
    egress_header: Header
    recirculation: range
    cpu_port: int
    most_mirrored: int
    alu_bits: int
    comparisons: int

    @property
    def most_resubmitted(self) -> int:
        """Bytes of a resubmit header: it takes the place of the port's metadata."""
        return self.port_metadata

    @property
    def masks_parser_counters(self) -> bool:
        """Whether a parser counter's mask is a mask, and not the number of its highest bit."""
        return self.family == "tf2"


TOFINO = Chip(
    "TNA", "tf1", "BFN-T10-064Q", 4, 12, 8, _egress_header(14, 5, 0), range(68, 72), 64, 32, 32, 2,
)  # fmt: skip
TOFINO2 = Chip(
    "T2NA", "tf2", "BFN-T20-128Q", 4, 20, 24, _egress_header(0, 7, 8), range(6, 8), 0, 120, 64, 4,
)  # fmt: skip


def chip_of(program: ir.Program) -> Chip:
    """Return the chip that a program is written for.

    That of its package (`@pkginfo`) or, where the architecture file is not ours, the one whose
    queue numbers the metadata have."""
    for annotation in program.package.declared_annotations:
        if annotation.name == "pkginfo" and f'"{TOFINO2.name}"' in annotation.body:
            return TOFINO2
    for _, block in blocks(program.package):
        for param in block.params:
            t = param.var.type
            if isinstance(t, Fields) and t.name == "ingress_intrinsic_metadata_for_tm_t":
                wide = [f for f in t.fields if f.name == "qid" and f.type == Bits(7)]
                return TOFINO2 if wide else TOFINO
    return TOFINO
