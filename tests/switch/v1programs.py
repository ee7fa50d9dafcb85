"""Small v1model programs: a frame to fill in.

Packets are a header `a` of four bytes (kind, x, y, z), one byte each, then payload.
"""

from __future__ import annotations

from typing import Any

from gradplane.switch import Switch
from gradplane.switch.ir.verify import verify

FRAME = """
#include <core.p4>
#include <v1model.p4>
header a_t {{ bit<8> kind; bit<8> x; bit<8> y; bit<8> z; }}
{types}
struct headers_t {{ a_t a; {headers} }}
struct metadata_t {{ bit<8> unused; {metadata} }}
parser P(packet_in pkt, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    {parser_locals}
    state start {{ {parser} }}
    {states}
}}
control V(inout headers_t h, inout metadata_t m) {{ apply {{ {verify} }} }}
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    {ingress_locals}
    apply {{ {ingress} }}
}}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control C(inout headers_t h, inout metadata_t m) {{ apply {{ {compute} }} }}
control D(packet_out pkt, in headers_t h) {{ apply {{ {deparser} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

DEFAULTS = {
    "types": "", "headers": "", "metadata": "", "parser_locals": "",
    "parser": "pkt.extract(h.a); transition accept;", "states": "", "verify": "",
    "ingress_locals": "", "ingress": "s.egress_spec = 1;", "egress_locals": "", "egress": "",
    "compute": "", "deparser": "pkt.emit(h);",
}  # fmt: skip


def source(**parts: str) -> str:
    """Return the program's text; parts are those of DEFAULTS."""
    return FRAME.format(**{**DEFAULTS, **parts})


def switch(clock: Any = lambda: 0, seed: int = 0, **parts: str) -> Switch:
    """Return a switch that runs the program, whose IR was verified."""
    sw = Switch("test.p4", text=source(**parts), clock=clock, seed=seed)
    verify(sw.program)
    return sw


def packet(kind: int = 0, x: int = 0, y: int = 0, z: int = 0, payload: bytes = b"") -> bytes:
    return bytes([kind, x, y, z]) + payload
