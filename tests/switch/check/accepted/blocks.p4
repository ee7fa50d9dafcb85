// Sub-controls and sub-parsers: instances, constructor parameters, direct application.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
control Inner(inout bit<8> x) {
    action go() { x = x + 1; exit; }
    table t { key = { x : exact; } actions = { go; NoAction; } }
    apply { t.apply(); }
}
control Type(inout bit<8> x);
control Outer(inout bit<8> x, in bit<8> y)(bit<8> k, bool f, Type inner) {
    register<bit<8>>((bit<32>)k) r;
    bit<8> mine = k;
    apply { if (f) { mine = y; } inner.apply(x); r.write(0, mine); if (x == 3) { return; } x = mine; }
}
control Plain(inout bit<8> x) { apply { x = 1; } }
control Uses(inout bit<8> x, register<bit<8>> r) { apply { r.read(x, 0); } }
parser Leaf(packet_in p, out h_t h) { state start { p.extract(h); transition accept; } }
parser Branch(packet_in p, out h_t h, inout bit<8> n)(bit<8> stop) {
    Leaf() leaf;
    bit<8> depth = 5;
    state start { leaf.apply(p, h); transition select(h.a, depth) { (stop, _): accept; (_, 5): more; } }
    state more { n = n + 1; depth = 7; leaf.apply(p, h); transition accept; }
}
struct H { eth_t eth; h_t h; h_t g; h_t[3] st; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    Branch(3) b1;
    Branch(stop = 4) b2;
    state start {
        p.extract(hdr.eth);
        p.extract(hdr.h);
        p.extract(hdr.g);
        p.extract(hdr.st.next);
        b1.apply(p, hdr.h, m.x);
        b2.apply(p, hdr.g, m.x);
        b1.apply(p, hdr.st[1], m.x);
        Leaf.apply(p, hdr.st.next);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    Outer(3, true, Inner()) o1;
    Inner() shared;
    Outer(k = 4, f = false, inner = shared) o2;
    register<bit<8>>(3) reg;
    Uses() uses;
    apply {
        o1.apply(m.x, 3);
        o2.apply(hdr.h.a, m.x);
        o1.apply(hdr.h.b, m.x);
        Plain.apply(m.x);
        Plain.apply(m.x);
        uses.apply(m.x, reg);
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
