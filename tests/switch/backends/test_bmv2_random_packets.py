"""Programs of `random_packets.cases` with random entries and packets, here and on BMv2.

They need simple_switch_grpc on PATH. Each program gets a switch of its own, so that registers start
with zero. Our JSON is compared; what p4c makes of the same programs was compared by hand.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gradplane.differ import difference
from gradplane.switch import Switch

FRAME = """
#include <core.p4>
#include <v1model.p4>
@top@
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
@types@
struct H { h_t h; @headers@ }
struct M { bit<8> x; bit<16> y; bit<32> z; @meta@ }
@top2@
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    @plocals@
    state start { p.extract(h.h); @more@ }
    @states@
}
control V(inout H h, inout M m) { apply { @verify@ } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    @locals@
    apply { s.egress_spec = 1; @body@ }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { @egress@ } }
control C(inout H h, inout M m) { apply { @compute@ } }
control D(packet_out p, in H h) { apply { @deparse@ } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
TEXT = (Path(__file__).parent / "random_packets.cases").read_text()
CASES = dict(re.findall(r"^== (.+)\n((?:(?!==).*\n)*)", TEXT, re.M))


def program(parts: str) -> str:
    given = {"more": "transition accept;", "deparse": "p.emit(h);"}
    given |= dict(re.findall(r"^-- (\w+)\n((?:(?!--).*\n)*)", parts, re.M))
    return re.sub(r"@(\w+)@", lambda part: given.pop(part[1], ""), FRAME)


def test_they_are_programs() -> None:
    """Some of them, so that the file stays valid where BMv2 is missing."""
    for name in list(CASES)[::10]:
        Switch(f"{name}.p4", text=program(CASES[name]), engine="interpreter").process(0, bytes(60))


@pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"
)
@pytest.mark.parametrize("name", CASES)
def test_both_switches_are_equal(name: str, tmp_path: Path) -> None:
    (path := tmp_path / "case.p4").write_text(program(CASES[name]))
    result = difference.diff(path, packets=25, seed=5)
    assert not result.difference, result.text()
    assert (result.packets, result.refused) == (25, ())
