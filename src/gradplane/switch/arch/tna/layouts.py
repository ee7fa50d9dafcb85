"""The values that a pipeline's blocks take: a program's blocks may leave metadata out."""

from __future__ import annotations

from gradplane.switch.arch.blocks import Layout
from gradplane.switch.arch.tna.parser_choices import parser_names
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields

INGRESS = ("ingress_parser", "ingress", "ingress_deparser")
EGRESS = ("egress_parser", "egress", "egress_deparser")
PORT, GROUPS = "ucast_egress_port", ("mcast_grp_a", "mcast_grp_b")
"""The destinations that a program gives the traffic manager. 0 is one, so each has a flag."""

_VALUES = {
    "ingress_intrinsic_metadata_t": "intrinsic",
    "ingress_intrinsic_metadata_for_tm_t": "tm",
    "ingress_intrinsic_metadata_from_parser_t": "parser",
    "ingress_intrinsic_metadata_for_deparser_t": "deparser",
    "ghost_intrinsic_metadata_t": "ghost",
    "egress_intrinsic_metadata_t": "intrinsic",
    "egress_intrinsic_metadata_from_parser_t": "parser",
    "egress_intrinsic_metadata_for_deparser_t": "deparser",
    "egress_intrinsic_metadata_for_output_port_t": "output port",
}
"""The value that a parameter of a type is, after the headers and the metadata of the program."""


def is_set(destination: str) -> str:
    """Return the name of the flag that says that the program has set a destination."""
    return f"{destination}_is_set"


def pipelines(program: ir.Program) -> list[ir.Package]:
    """Return the different pipelines of a program, in order; a single one is for all pipes."""
    found = [program.package.args.get(f"pipe{i}") for i in range(4)]
    return list(dict.fromkeys(p for p in found if isinstance(p, ir.Package)))


def layout(pipeline: ir.Package, names: tuple[str, ...]) -> Layout:
    """Return the layout of a pipeline's ingress or egress."""
    others = parser_names(pipeline, names[0])[1:]
    return Layout(
        {name: _values(pipeline, name) for name in names},
        {name: _values(pipeline, name) for name in others},
    )


def _values(pipeline: ir.Package, name: str) -> tuple[str, ...]:
    block = pipeline.args[name]
    assert isinstance(block, ir.Parser | ir.Control), block
    rest = [p.var.type for p in block.params[2:]]
    return ("hdr", "meta", *(_VALUES[t.name] for t in rest if isinstance(t, Fields)))
