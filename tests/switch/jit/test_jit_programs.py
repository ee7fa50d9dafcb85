"""Whole programs on the JIT engine and the interpreter: equal in all that can be seen."""

from pathlib import Path

import pytest
from jit_packets import PACKETS
from jit_pair import Pair

from gradplane.switch.compiler import compile_program

PROGRAMS = Path(__file__).parent / "programs"
COUNTS = {"traffic": 60}  # packets a round, of which each becomes many


@pytest.mark.parametrize("name", PACKETS)
def test_programs_agree(name: str) -> None:
    make, count = PACKETS[name], COUNTS.get(name, 700)
    pair = Pair(compile_program(PROGRAMS / f"{name}.p4"), seed=1, cpu_port=3)
    sent = pair.check([make(pair.rng) for _ in range(20)])
    for _ in range(5):
        pair.populate()
        for _ in range(4):
            sent += pair.check([make(pair.rng) for _ in range(count)])
            pair.disturb()
    assert sent > 500


LONG_STACKS = """
#include <core.p4>
#include <v1model.p4>
header chosen_t { bit<32> bits; }
header odd_t { bit<12> v; }
header byte_t { bit<8> v; }
header_union either_t { odd_t odd; byte_t byte; }
struct headers_t { chosen_t chosen; odd_t[30] odds; either_t[30] eithers; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.chosen); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        for (bit<8> i in 0 .. 29) {
            bit<32> bits = h.chosen.bits >> i;
            if (bits[0:0] == 1) { h.odds[i] = { (bit<12>) i }; }
            if (bits[1:1] == 1) { h.eithers[i].odd = { (bit<12>) i }; }
            if (bits[2:2] == 1) { h.eithers[i].byte = { i }; }
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_long_stacks_are_emitted_alike() -> None:
    """Stacks of headers and of unions are emitted, with gaps, at any bit."""
    pair = Pair(compile_program("long_stacks.p4", text=LONG_STACKS))
    assert pair.check([pair.rng.randbytes(pair.rng.randint(4, 9)) for _ in range(300)]) == 300


EDGES = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct headers_t { data_t x; data_t[4] many; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.x); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        %s
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { %s } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
EMIT = "packet.emit(h.x);"
WIDE = """
    bit<2304> n = (bit<2304>) h.x.d;
    n = n * n * n; n = n * n * n; n = n * n * n; n = n * n * n + (bit<2304>) h.x.c;
    bit<2304> divisor = (bit<2304>) (h.x.a ++ 300w0 ++ h.x.b);
    bit<2304> quotient = n / divisor; bit<2304> rest = n % divisor;
    int<2304> signed = -(int<2304>) n; signed = signed * signed;
    h.x.a = n[2007:2000] ^ quotient[1607:1600];
    h.x.c = rest[307:292];
    h.x.d = (bit<32>) (bit<2304>) signed;
"""
HASHED = """
    int<8> small; int<70> large;
    hash(small, HashAlgorithm.crc16, -8s1, { h.x.c }, 8w3);
    hash(large, HashAlgorithm.crc32, -70s5, { h.x.d }, (int<9>) (1w1 ++ h.x.a));
    h.x.b = (bit<8>) small; h.x.d = (bit<32>) (bit<70>) large;
"""
MANY = "for (bit<32> i in 0 .. 3) { h.many[i] = h.x; }"
EMIT_SOME = "for (bit<8> i = 0; i < h.x.a; i = i + 1) { packet.emit(h.many[i & 3]); }"
EMIT_TOO_MUCH = "for (bit<16> i = 0; i < h.x.c; i = i + 1) { packet.emit(h.x); }"


@pytest.mark.parametrize(
    ("body", "emit"),
    [(WIDE, EMIT), (HASHED, EMIT), (MANY, EMIT_SOME), ("", EMIT_TOO_MUCH)],
    ids=["wide products", "signed hash bounds", "emits in a loop", "too many emits"],
)
def test_edges_of_the_engine_agree(body: str, emit: str) -> None:
    pair = Pair(compile_program("edges.p4", text=EDGES % (body, emit)))
    pair.check([pair.rng.randbytes(pair.rng.choice((8, 12))) for _ in range(60)])


def test_emitted_headers_have_a_limit() -> None:
    pair = Pair(compile_program("edges.p4", text=EDGES % ("", EMIT_TOO_MUCH)))
    fits, too_many = (bytes([0, 0, *n.to_bytes(2, "big"), 0, 0, 0, 0]) for n in (8192, 8193))
    assert pair.check([fits, too_many]) == 1
    reason = "more than 65536 bytes of headers were emitted"
    assert pair.jit.state.drops == {reason: 1}
