"""Tables whose actions only assign: by record where what was before is known, else by action."""

import pytest
from jit_pair import Pair

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.jit.table_layout import shape_of, with_places
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.runtime.packet_buffers import pack

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header in_t { bit<4> k; bit<3> j; bit<1> flag; bit<8> before; }
header out_t {
    bit<8> zero; bit<8> kept; bit<16> wide; bit<8> run; bit<1> hit; bool b; int<6> s;
    bit<8> one; bit<8> two;
}
struct headers_t { in_t i; out_t o; }
struct meta_t { bit<8> v; bit<16> w; bool b; int<6> s; bit<8> both; }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.i); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<8> fresh = 0;
    bit<8> known;
    action set(bit<8> v) { fresh = v; }
    action keep(bit<8> v) { known = v; }
    action more(bit<8> v, bit<16> w, bool b, int<6> s, bit<8> unused) {
        m.v = v; m.w = w; m.b = b; m.s = s;
    }
    action fewer(bit<16> w) { m.w = w; m.v = 9; }
    action first(bit<8> v) { m.both = v; }
    action second(bit<8> v) { m.both = v; }
    action computed(bit<8> v) { m.both = v + 1; }
    table of_zero {
        key = { h.i.k : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    table of_known { key = { h.i.k : exact; h.i.j : exact; } actions = { keep; NoAction; } }
    table of_fields { key = { h.i.k : exact; } actions = { NoAction; more; fewer; } }
    table always {
        key = { h.i.j : exact; }
        actions = { first; second; }
        default_action = second(77);
    }
    table not_plain { key = { h.i.j : exact; } actions = { computed; NoAction; } }
    apply {
        s.egress_spec = 1;
        known = h.i.before;
        h.o.setValid();
        of_zero.apply();
        h.o.zero = fresh;
        if (h.i.flag == 1 && of_known.apply().hit) { h.o.hit = 1; }
        h.o.kept = known;
        m.w = 16w0x1234;
        switch (of_fields.apply().action_run) {
            more: { h.o.run = 1; }
            fewer: { h.o.run = 2; }
            default: { h.o.run = 3; }
        }
        h.o.wide = m.w;
        h.o.b = m.b;
        h.o.s = m.s;
        h.o.one = m.v;
        always.apply();
        h.o.two = m.both;
        not_plain.apply();
        h.o.one = h.o.one ^ m.both;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_they_do_as_the_interpreter_does() -> None:
    pair = Pair(compile_program("plain.p4", text=PROGRAM), seed=3)
    packets = [bytes([n, before]) for n in range(256) for before in (0, 5)]
    pair.check(packets)
    for _ in range(12):
        pair.populate()
        pair.check(packets)
        pair.disturb()
        pair.check(packets)


@pytest.mark.parametrize(
    ("table", "kind"),
    [("of_zero", "plain"), ("of_known", "plain"), ("of_fields", "plain"), ("always", "plain"),
     ("not_plain", "direct")],
)  # fmt: skip
def test_what_is_plain(table: str, kind: str) -> None:
    program = compile_program("plain.p4", text=PROGRAM)
    found = next(t for t in program.tables if t.name == f"I.{table}")
    assert shape_of(found, Layouts()).kind == kind


ALIKE = """
#include <core.p4>
#include <v1model.p4>
header in_t { bit<4> k; bit<4> j; }
header out_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<16> e; bit<8> hits; }
struct headers_t { in_t i; out_t o; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.i); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control Look(in in_t i, out bit<8> v) {
    action set(bit<8> value) { v = value; }
    table found { key = { i.k : exact; i.j : exact; } actions = { set; NoAction; } }
    apply { v = 0; found.apply(); }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Look() a;
    Look() b;
    Look() c;
    action set(bit<8> value) { h.o.d = value; }
    action wide(bit<16> value) { h.o.e = value; }
    table other { key = { h.i.k : exact; h.i.j : exact; } actions = { set; NoAction; } }
    table larger { key = { h.i.k : exact; h.i.j : exact; } actions = { wide; NoAction; } }
    apply {
        s.egress_spec = 1;
        h.o.setValid();
        a.apply(h.i, h.o.a);
        b.apply(h.i, h.o.b);
        c.apply(h.i, h.o.c);
        h.o.d = 7;
        h.o.e = 9;
        h.o.hits = 0;
        if (other.apply().hit) { h.o.hits = 1; }
        if (larger.apply().hit) { h.o.hits = h.o.hits + 2; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_tables_alike_have_their_records_side_by_side() -> None:
    program = compile_program("alike.p4", text=ALIKE)
    shapes, size = with_places(shape_of(table, Layouts()) for table in program.tables)
    rows = {name: (shape.records, shape.turns) for name, shape in shapes.items()}
    in_turn = [rows[f"I.{name}"] for name in ("a.found", "b.found", "c.found", "other")]
    assert sorted(in_turn) == [(16 * number, 2) for number in range(4)]
    assert rows["I.larger"] == (16 * 16 * 4 + 64, 0) and size > 16 * 16 * 6
    pair, packets = Pair(program, seed=4), [bytes([n]) for n in range(256)]
    pair.check(packets)
    for _ in range(12):
        pair.populate()
        pair.check(packets)
        pair.disturb()
        pair.check(packets)


REGISTERS = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> i; bit<16> j; bit<32> v; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.h); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(5) a;
    register<bit<7>>(3) b;
    register<int<12>>(2) c;
    register<bit<100>>(2) d;
    register<bit<8>>(0) none;
    bit<32> x; bit<7> y; int<12> z; bit<100> w; bit<8> n;
    apply {
        s.egress_spec = 1;
        a.write((bit<32>) h.h.i, h.h.v);
        b.write((bit<32>) h.h.j, h.h.v[6:0]);
        c.write((bit<32>) h.h.i, (int<12>) h.h.v[11:0]);
        d.write((bit<32>) h.h.j, (bit<100>) h.h.v << 60);
        none.write((bit<32>) h.h.i, h.h.v[7:0]);
        a.read(x, (bit<32>) h.h.j);
        b.read(y, (bit<32>) h.h.i);
        c.read(z, (bit<32>) h.h.j);
        d.read(w, (bit<32>) h.h.i);
        none.read(n, (bit<32>) h.h.j);
        h.h.v = x ^ (bit<32>) y ^ (bit<32>) (bit<12>) z ^ w[91:60] ^ (bit<32>) n;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_registers_are_not_touched_beyond_their_ends() -> None:
    pair = Pair(compile_program("registers.p4", text=REGISTERS), seed=5)
    indices = (0, 1, 2, 3, 4, 5, 6, 1000, 65535)
    packets = [
        bytes([i >> 8, i & 255, j >> 8, j & 255]) + pair.rng.randbytes(4)
        for i in indices
        for j in indices
    ]
    pair.check(packets * 3)


def test_results_stay_as_they_are_when_more_is_processed() -> None:
    switch = Switch("registers.p4", text=REGISTERS)
    count, size = 6000, 8
    data = bytes(range(250)) * (count * size // 250)
    packets = [data[i * size : (i + 1) * size] for i in range(count)]
    first = switch.process_buffer(*pack([1] * count, packets))
    copies = [array.copy() for array in first]
    for _ in range(4):
        switch.process_buffer(*pack([1] * count, packets[::-1]))
    assert all((a == b).all() for a, b in zip(first, copies, strict=True))
