"""The states and rows that parsers take, and the containers of the fields that they extract."""

import pytest
from fragments import PROGRAMS

from gradplane.fit.analysis import PipelineFit, fit
from gradplane.fit.chip_resources import CHIPS
from gradplane.switch.compiler import compile_program


def of_labels(
    declared: str, first: str, states: str, body: str = "", egress: str = "transition accept;"
) -> PipelineFit:
    """Return the report on a program with labels of 32 bits; the first is in state `first`, and
    egress parses them by what follows its metadata."""
    text = f"""#include <core.p4>
    #include <tna.p4>
    header label_t {{ bit<23> label; bit<1> bottom; bit<8> ttl; }}
    struct headers_t {{ {declared} }}
    struct metadata_t {{ bit<8> none; }}
    parser IP(packet_in p, out headers_t hdr, out metadata_t md,
            out ingress_intrinsic_metadata_t ig) {{
        state start {{ p.extract(ig); p.advance(PORT_METADATA_SIZE); transition {first}; }}
        {states}
    }}
    control I(inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig,
            in ingress_intrinsic_metadata_from_parser_t prsr,
            inout ingress_intrinsic_metadata_for_deparser_t dprsr,
            inout ingress_intrinsic_metadata_for_tm_t tm) {{
        apply {{ tm.ucast_egress_port = 1; {body} }}
    }}
    control ID(packet_out p, inout headers_t hdr, in metadata_t md,
            in ingress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ p.emit(hdr); }} }}
    parser EP(packet_in p, out headers_t hdr, out metadata_t md,
            out egress_intrinsic_metadata_t eg) {{
        state start {{ p.extract(eg); {egress} }}
        {states if first in egress else ""}
    }}
    control E(inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg,
            in egress_intrinsic_metadata_from_parser_t prsr,
            inout egress_intrinsic_metadata_for_deparser_t dprsr,
            inout egress_intrinsic_metadata_for_output_port_t oport) {{ apply {{ }} }}
    control ED(packet_out p, inout headers_t hdr, in metadata_t md,
            in egress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ p.emit(hdr); }} }}
    Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
    Switch(pipe) main;"""
    path = PROGRAMS / "generated.p4"
    return fit(compile_program(path, text=text), CHIPS["tofino"]).pipelines[0]


def test_a_stack_takes_what_as_many_headers_do() -> None:
    stack = of_labels(
        "label_t[3] l;",
        "labels",
        "state labels { p.extract(hdr.l.next);"
        " transition select(hdr.l.last.bottom) { 1 : accept; default : labels; } }",
        "hdr.l.pop_front(1);",
    )
    way_on = "transition select(hdr.l{0}.bottom) {{ 1 : accept; default : {1}; }} }}"
    states = [
        f"state s{at} {{ p.extract(hdr.l{at}); " + way_on.format(at, following)
        for at, following in enumerate(("s1", "s2", "reject"))
    ]
    headers = of_labels(
        "label_t l0; label_t l1; label_t l2;",
        "s0",
        " ".join(states),
        "hdr.l0 = hdr.l1; hdr.l1 = hdr.l2; hdr.l2.setInvalid();",
    )
    for size in (8, 16, 32):
        assert stack.phv.count(size) == headers.phv.count(size)
    assert stack.phv.passive_bits == headers.phv.passive_bits
    parsers = stack.parsers[0], headers.parsers[0]
    assert [(p.states, p.rows) for p in parsers] == [(4, 7), (4, 7)]


@pytest.mark.parametrize(("size", "fits"), [(33, True), (34, False)])
def test_the_egress_parser_passes_by_160_bytes(size: int, fits: bool) -> None:
    """27 of them are the chip's own metadata."""
    found = of_labels(
        f"label_t[{size}] l;",
        "labels",
        "state labels { p.extract(hdr.l.next);"
        " transition select(hdr.l.last.bottom) { 1 : accept; default : labels; } }",
        egress="transition labels;",
    )
    (depth,) = [p.depth for p in found.parsers if p.gress == "egress"]
    assert depth == 27 + 4 * size
    overruns = [o for o in found.overruns if o.resource == "parser"]
    assert bool(overruns) != fits
    for overrun in overruns:
        assert overrun.what.endswith(
            "up to 163 bytes, Tofino 1's through 160; state labels is beyond them"
        )
        assert overrun.span.line == 22


@pytest.mark.parametrize(
    ("body", "shared"),
    [
        ("", True),
        ("headers_t copy = hdr; hdr = copy;", True),  # as a called control takes and gives them
        ("hdr.b.setValid();", False),
        ("hdr.b = hdr.first;", False),
    ],
)
def test_headers_of_two_ways_share_containers_unless_the_control_adds_one(
    body: str, shared: bool
) -> None:
    """No packet has both from the parser; a packet with the first may get the second."""
    found = of_labels(
        "label_t first; label_t a; label_t b;",
        "first",
        """state first { p.extract(hdr.first);
            transition select(hdr.first.ttl) { 1 : a; default : b; } }
        state a { p.extract(hdr.a); transition accept; }
        state b { p.extract(hdr.b); transition accept; }""",
        f"hdr.a.ttl = hdr.a.ttl + 1; hdr.b.ttl = hdr.b.ttl + 1; {body}",
    )
    both = [c for c in found.phv.containers if len(c.pieces) > 1]
    names = {"hdr.a.ttl", "hdr.b.ttl"}
    together = [c for c in both if names <= {f.name for p in c.pieces for f in p.fields}]
    assert bool(together) == shared
