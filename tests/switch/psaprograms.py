"""Small PSA programs: a frame to fill in.

Packets are a header `a` of four bytes (kind, x, y, z), one byte each, then payload.
"""

from __future__ import annotations

from typing import Any

from gradplane.switch import Switch
from gradplane.switch.ir.verify import verify

FRAME = """
#include <core.p4>
#include <psa.p4>
{types}
header a_t {{ bit<8> kind; bit<8> x; bit<8> y; bit<8> z; }}
struct headers_t {{ a_t a; {headers} }}
struct metadata_t {{ bit<8> kept; {metadata} }}
struct empty_t {{ }}
parser IngressParserImpl(packet_in pkt, out headers_t h, inout metadata_t m,
        in psa_ingress_parser_input_metadata_t s, in metadata_t resubmitted,
        in metadata_t recirculated) {{
    {parser_locals}
    state start {{ {parser} }}
}}
control ingress(inout headers_t h, inout metadata_t m, in psa_ingress_input_metadata_t s,
        inout psa_ingress_output_metadata_t o) {{
    {ingress_locals}
    apply {{ {ingress} }}
}}
control IngressDeparserImpl(packet_out pkt, out metadata_t clone, out metadata_t resubmit,
        out metadata_t normal, inout headers_t h, in metadata_t m,
        in psa_ingress_output_metadata_t o) {{
    {deparser_locals}
    apply {{ {deparser} pkt.emit(h); }}
}}
parser EgressParserImpl(packet_in pkt, out headers_t h, inout metadata_t m,
        in psa_egress_parser_input_metadata_t s, in metadata_t normal,
        in metadata_t cloned_i2e, in metadata_t cloned_e2e) {{
    state start {{ pkt.extract(h.a); transition accept; }}
}}
control egress(inout headers_t h, inout metadata_t m, in psa_egress_input_metadata_t s,
        inout psa_egress_output_metadata_t o) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control EgressDeparserImpl(packet_out pkt, out metadata_t clone, out metadata_t recirculate,
        inout headers_t h, in metadata_t m, in psa_egress_output_metadata_t o,
        in psa_egress_deparser_input_metadata_t s) {{
    {egress_deparser_locals}
    apply {{ {egress_deparser} pkt.emit(h); }}
}}
IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"""

DEFAULTS = {
    "types": "", "headers": "", "metadata": "", "parser_locals": "",
    "parser": "pkt.extract(h.a); transition accept;", "ingress_locals": "",
    "ingress": "send_to_port(o, (PortId_t) 1);", "deparser_locals": "", "deparser": "",
    "egress_locals": "", "egress": "", "egress_deparser_locals": "", "egress_deparser": "",
}  # fmt: skip


def source(**parts: str) -> str:
    """Return the program's text; parts are those of DEFAULTS."""
    return FRAME.format(**{**DEFAULTS, **parts})


def switch(engine: str = "jit", clock: Any = lambda: 0, seed: int = 0, **parts: str) -> Switch:
    """Return a switch that runs the program, whose IR was verified."""
    sw = Switch("test.p4", text=source(**parts), engine=engine, clock=clock, seed=seed)
    verify(sw.program)
    return sw


def packet(kind: int = 0, x: int = 0, y: int = 0, z: int = 0, payload: bytes = b"") -> bytes:
    return bytes([kind, x, y, z]) + payload
