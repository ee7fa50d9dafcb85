"""Memory of large headers that is not cleared: no packet sees what an earlier one left there."""

import pytest
from jit_pair import Pair

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.guarded_headers import guarded_headers
from gradplane.switch.jit.value_layout import Layouts

FIELDS = " ".join(f"bit<32> f{i};" for i in range(20))
ALL = " ".join(f"h.made.f{i} = h.k.v + {i};" for i in range(20))
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header k_t { bit<8> kind; bit<32> v; }
header large_t { %s }
struct headers_t { k_t k; large_t parsed; large_t made; large_t[2] stack; }
struct meta_t { bit<32> v; large_t copy; }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.k);
        transition select(h.k.kind) { 1: large; default: accept; }
    }
    state large { packet.extract(h.parsed); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action leave() { exit; }
    action stay() { }
    table way { key = { h.k.kind : exact; } actions = { stay; leave; } default_action = stay(); }
    apply { s.egress_spec = 1; %s }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
PACKETS = [
    bytes([kind]) + bytes(range(seed, seed + 4)) + bytes((seed + i) % 256 for i in range(90))
    for kind in (1, 2)
    for seed in (7, 130)
]


def _program(body: str) -> ir.Program:
    return compile_program("uncleared.p4", text=PROGRAM % (FIELDS, body))


@pytest.mark.parametrize(
    "body",
    [
        "h.made.setValid(); " + ALL,
        "h.made.setValid(); h.made.f3 = h.k.v; h.made.f0 = 5; h.made.f19 = 6;",
        "h.made.setValid(); h.made.f1 = h.made.f0 + 1; h.made.f0 = h.k.v;",
        "h.made.setValid(); way.apply(); " + ALL,
        "h.made.setValid(); if (h.k.kind == 2) { return; } " + ALL,
        "h.made.setValid(); h.made.f0[3:0] = 9; " + ALL,
        "h.k.v = h.parsed.f3;",
        "h.parsed.setInvalid(); h.k.v = h.parsed.f3;",
        "if (h.parsed.isValid() && h.parsed.f2 != 0) { h.k.v = h.parsed.f3; }",
        "if (h.parsed.isValid() || h.parsed.f2 != 0) { h.k.v = 1; }",
        "if (!h.parsed.isValid()) { h.k.v = h.parsed.f3; }",
        "h.made = h.parsed; h.made.f0 = 1; h.k.v = h.made.f4;",
        "m.copy = h.parsed; h.k.v = m.copy.f5;",
        "h.parsed.setValid(); h.parsed.f5 = h.parsed.f6;",
        "h.stack.push_front(1); h.stack[0].setValid(); h.stack[0].f2 = h.k.v;",
        "h.stack[0].setValid(); h.stack.pop_front(1); h.k.v = h.stack[0].f2;",
        "h.stack[1] = h.parsed; h.stack.pop_front(1); h.k.v = h.stack[0].f3 + h.stack[1].f3;",
        "if (h.stack[0].isValid()) { h.stack.pop_front(1); } h.k.v = h.stack[0].f1;",
    ],
)
def test_both_engines_agree_after_packets_with_other_headers(body: str) -> None:
    pair = Pair(_program(body))
    pair.jit.table("way").add({"kind": 2}, "leave")
    pair.interpreter.table("way").add({"kind": 2}, "leave")
    for packet in PACKETS + PACKETS:
        assert pair.jit.process(1, packet) == pair.interpreter.process(1, packet), packet


@pytest.mark.parametrize(
    "body, count",
    [
        ("h.made.setValid(); if (h.parsed.isValid()) { h.made.f0 = h.parsed.f1; }", 4),
        ("h.made.setValid(); h.made.f0 = h.parsed.f1;", 3),
        ("h.stack[0].setValid(); h.k.v = h.stack[0].f1 + h.stack[1].f1;", 3),
        ("h.stack.pop_front(1); h.k.v = h.stack[0].f2;", 2),
        ("headers_t copy = h; h.k.v = copy.k.v;", 0),
    ],
)
def test_headers_that_are_read_only_when_valid_are_not_cleared(body: str, count: int) -> None:
    package = _program(body).package
    blocks = []
    for name in ("p", "vr", "ig", "eg", "ck", "dep"):
        block = package.parser(name) if name == "p" else package.control(name)
        blocks.append((block, block.params[0].var))
    spans = guarded_headers(Layouts(), blocks[0][1].type, blocks)
    assert [end - first for first, end in spans] == [80] * count
