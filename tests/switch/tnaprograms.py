"""Small TNA programs: a frame to fill in.

Packets are a header `a` of four bytes (kind, x, y, z), one byte each, then payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch import Switch
from gradplane.switch.ir.verify import verify

FRAME = """
#include <core.p4>
#include <{include}>
{types}
header a_t {{ bit<8> kind; bit<8> x; bit<8> y; bit<8> z; }}
struct headers_t {{ {first_headers} a_t a; {headers} }}
struct metadata_t {{ bit<8> kept; {metadata} }}
parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
        out ingress_intrinsic_metadata_t ig) {{
    {parser_locals}
    state start {{ pkt.extract(ig); {metadata_state} }}
    {states}
    state parse_a {{ {parser} }}
}}
control ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr,
        inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {{
    {ingress_locals}
    apply {{ {ingress} }}
}}
control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
        in ingress_intrinsic_metadata_for_deparser_t dprsr) {{
    {deparser_locals}
    apply {{ {deparser} pkt.emit(h); }}
}}
parser EgressParser(packet_in pkt, out headers_t h, out metadata_t m,
        out egress_intrinsic_metadata_t eg) {{
    {egress_parser_locals}
    state start {{ pkt.extract(eg); {egress_parser} }}
    {egress_states}
}}
control egress(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr,
        inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t oport) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control EgressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
        in egress_intrinsic_metadata_for_deparser_t dprsr) {{
    {egress_deparser_locals}
    apply {{ {egress_deparser} pkt.emit(h); }}
}}
{main}
"""

DEFAULTS = {
    "include": "tna.p4", "types": "", "first_headers": "", "headers": "", "metadata": "",
    "parser_locals": "", "metadata_state": "pkt.advance(PORT_METADATA_SIZE); transition parse_a;",
    "states": "", "parser": "pkt.extract(h.a); transition accept;", "ingress_locals": "",
    "ingress": "tm.ucast_egress_port = 1;", "deparser_locals": "", "deparser": "",
    "egress_parser_locals": "", "egress_parser": "pkt.extract(h.a); transition accept;",
    "egress_states": "", "egress_locals": "", "egress": "", "egress_deparser_locals": "",
    "egress_deparser": "",
    "main": """
Pipeline(IngressParser(), ingress(), IngressDeparser(), EgressParser(), egress(),
         EgressDeparser()) pipe;
Switch(pipe) main;
""",
}  # fmt: skip


def source(**parts: str) -> str:
    """Return the program's text; parts are those of DEFAULTS."""
    return FRAME.format(**{**DEFAULTS, **parts})


def switch(
    engine: str = "jit", clock: Callable[[], int] = lambda: 0, seed: int = 0,
    cpu_port: int | None = None, **parts: Any,
) -> Switch:  # fmt: skip
    """Return a switch that runs the program, whose IR was verified."""
    text = source(**parts)
    made = Switch("test.p4", text=text, engine=engine, clock=clock, seed=seed, cpu_port=cpu_port)
    verify(made.program)
    return made


def packet(kind: int = 0, x: int = 0, y: int = 0, z: int = 0, payload: bytes = b"") -> bytes:
    return bytes([kind, x, y, z]) + payload
