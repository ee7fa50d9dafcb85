"""Forms by themselves: programs around one construct each, with what each compiler says of it.

forms.toml has a table for each form: the parts of FRAME that it gives, and the verdicts. `alu`,
`cell` and `result` stand for a register action `ra` over a register `r`, in a short form.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from gradplane.fit.analysis import FitReport, chip_for, fit
from gradplane.fit.placement import used
from gradplane.switch.compiler import compile_program
from gradplane.switch.source import CompileError

HERE = Path(__file__).parent
FRAME = """#include <core.p4>
#include <{include}>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header num_t {
    bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3;
    bit<16> h0; bit<16> h1; bit<16> h2; bit<16> h3;
    bit<8> b0; bit<8> b1; bit<8> b2; bit<8> b3;
    bit<4> n0; bit<4> n1; bit<3> t0; bit<13> t1;
}
{types}
struct headers_t { eth_t eth; num_t n; {headers} }
struct meta_t { bit<32> m0; bit<32> m1; bit<16> k0; bit<16> k1; bit<8> c0; bit<8> c1; {meta} }
parser IngressParser(packet_in pkt, out headers_t hdr, out meta_t md,
                     out ingress_intrinsic_metadata_t ig) {
    {pdecl}
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); transition eth; }
    state eth { pkt.extract(hdr.eth); pkt.extract(hdr.n); {parse} }
    {states}
}
control Ingress(inout headers_t hdr, inout meta_t md, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    {decl}
    apply {
        tm.ucast_egress_port = 2;
        {body}
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in meta_t md,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    {ddecl}
    apply { {deparse} }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out meta_t md,
                    out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); {eparse} transition accept; }
}
control Egress(inout headers_t hdr, inout meta_t md, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t prsr,
               inout egress_intrinsic_metadata_for_deparser_t dprsr,
               inout egress_intrinsic_metadata_for_output_port_t oport) {
    {edecl}
    apply { {ebody} }
}
control EgressDeparser(packet_out pkt, inout headers_t hdr, in meta_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    {eddecl}
    apply { {edeparse} }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(),
         EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
"""
PARTS = {
    "parse": "transition accept;",
    "deparse": "pkt.emit(hdr);",
    "edeparse": "pkt.emit(hdr);",
    "body": "hdr.n.w0 = ra.execute(hdr.n.b0);",
}
"""The parts of the frame that are not empty where a form does not give them."""
ALU = (
    " Register<{cell}, bit<8>>(256) r; RegisterAction<{cell}, bit<8>, {result}>(r) ra ="
    " { void apply(inout {cell} v, out {result} o) { {alu} } }; "
)

MEMORIES = ("sram", "tcam", "map_ram")

Form = dict[str, Any]


def forms() -> list[Form]:
    rows: list[Form] = tomllib.loads((HERE / "forms.toml").read_text())["form"]
    return rows


def text(form: Form) -> str:
    """Return a form's program."""
    parts = {**PARTS, "include": "tna.p4" if chip(form) == "tofino" else "t2na.p4", **form}
    if "alu" in form:
        cell = form.get("cell", "bit<32>")
        values = {"cell": cell, "result": form.get("result", "bit<32>"), "alu": form["alu"]}
        parts["decl"] = parts.get("decl", "") + _filled(ALU, values)
    elif "body" not in form:
        parts["body"] = ""
    return _filled(FRAME, parts)


def _filled(frame: str, parts: dict[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda found: parts.get(found[1], ""), frame)


def chip(form: Form) -> str:
    return str(form.get("chip", "tofino"))


def verdict(form: Form) -> str:
    """Return why gradplane refuses a form: the first reason, "" if it takes it."""
    try:
        found = _report(form["name"], text(form))
    except CompileError as error:
        return f"check: {error.diagnostics[0].message}"
    reasons = [f"check: {refusal.message}" for refusal in found.refusals]
    reasons += [f"fit: {o.what}" for p in found.pipelines for o in p.overruns]
    return next(iter(reasons), "")


def memory(form: Form) -> dict[str, int]:
    """Return the blocks of memory that gradplane estimates for a form, of each kind that it
    takes."""
    stages = _report(form["name"], text(form)).pipelines[0].placement.stages
    return {kind: blocks for kind in MEMORIES if (blocks := used(stages)[kind])}


@cache
def _report(name: str, source: str) -> FitReport:
    program = compile_program(f"{name}.p4", text=source)
    return fit(program, chip_for(program), f"{name}.p4")
