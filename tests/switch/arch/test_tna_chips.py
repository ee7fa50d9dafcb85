"""The chip that a TNA program is for."""

from __future__ import annotations

import pytest
from tnaprograms import packet, source

from gradplane.switch import Switch
from gradplane.switch.arch.tna.chips import chip_of
from gradplane.switch.source import CompileError

BARE = """
#include <core.p4>
#include <tna.p4>
header a_t { bit<8> x; }
struct headers_t { a_t a; }
struct metadata_t { }
parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
                     out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); transition accept; }
}
control Ingress(inout headers_t h, inout metadata_t m) { apply { } }
control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m) { apply { } }
parser EgressParser(packet_in pkt, out headers_t h, out metadata_t m,
                    out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(inout headers_t h, inout metadata_t m) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t h, in metadata_t m) { apply { } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
         EgressDeparser()) pipe;
Switch(pipe) main;
"""


@pytest.mark.parametrize("text", [BARE, source(include="tna.p4")])
def test_a_macro_chooses_the_chip(text: str) -> None:
    def chip(**defines: str) -> str:
        made = Switch("chip.p4", text=text, defines=defines, engine="interpreter")
        return chip_of(made.program).name

    assert chip() == chip(__TARGET_TOFINO__="1") == "TNA"
    assert chip(__TARGET_TOFINO__="2") == "T2NA"
    with pytest.raises(CompileError, match="__TARGET_TOFINO__ is 1 for Tofino 1 or 2"):
        chip(__TARGET_TOFINO__="3")


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_tna_for_tofino_2_has_its_externs_and_ports(engine: str) -> None:
    text = source(
        include="tna.p4",
        ingress_locals="""
            Register<bit<8>, bit<8>>(4) cells;
            RegisterAction2<bit<8>, bit<8>, bit<8>, bit<8>>(cells) both = {
                void apply(inout bit<8> value, out bit<8> one, out bit<8> other) {
                    one = 1;
                    other = 2;
                }
            };""",
        ingress="bit<8> y; h.a.x = both.execute(0, y); h.a.y = y;"
        " tm.ucast_egress_port = h.a.kind == 0 ? 9w6 : 9w68; h.a.kind = h.a.kind + 1;",
    )
    made = Switch("chip.p4", text=text, defines={"__TARGET_TOFINO__": "2"}, engine=engine)
    # Port 6 recirculates on Tofino 2, and port 68 on Tofino 1.
    assert made.process(0, packet()) == [(68, packet(2, 1, 2))]
