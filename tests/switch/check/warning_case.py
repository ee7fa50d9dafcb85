"""A program with holes, and the warnings that it gets."""

from __future__ import annotations

from gradplane.switch.compiler import compile_source

TEMPLATE = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct H {{ h_t h; h_t g; h_t[2] s; }}
struct M {{ bit<8> x; bool f; }}
{top}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition {transition} }}
    {states}
}}
control V(inout H hdr, inout M m) {{ apply {{ }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {body} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def warnings(body: str = "", kind: str = "", **parts: str) -> list[str]:
    """Return the warnings of one kind; without one, all but those of unused things and of p4c."""
    slots = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    text = TEMPLATE.format(body=body, **(slots | parts))
    found = compile_source("case.p4", text=text).warnings
    return [
        w.message for w in found if (w.kind == kind if kind else w.kind not in ("unused", "p4c"))
    ]
