"""The cases of `language.cases`: small bodies, each about a feature, in both engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.ir.verify import verify

TEMPLATE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
@types@
struct H { h_t h; @headers@ }
struct M { bit<8> x; bit<16> y; }
@top@
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    @parsers@
    state start { p.extract(h.h); @more@ }
    @states@
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    @locals@
    apply { s.egress_spec = 1; @body@ }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
PACKET = bytes.fromhex("0102030405060708")
TEXT = (Path(__file__).parent / "language.cases").read_text()
CASES = re.findall(r"^== (.+): (\w+)\n((?:(?!==).*\n)*)", TEXT, re.M)


def program(parts: str) -> str:
    given = {"more": "transition accept;"}
    given |= dict(re.findall(r"^-- (\w+)\n((?:(?!--).*\n)*)", parts, re.M))
    return re.sub(r"@(\w+)@", lambda part: given.pop(part[1], ""), TEMPLATE)


@pytest.mark.parametrize(("expected", "parts"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_it_does_as_the_case_says(expected: str, parts: str) -> None:
    compiled = compile_program("case.p4", text=program(parts))
    verify(compiled)
    for engine in ("interpreter", "jit"):
        [(port, packet)] = Switch(compiled, engine=engine).process(0, PACKET)
        assert (port, packet.hex()[: len(expected)]) == (1, expected), engine
