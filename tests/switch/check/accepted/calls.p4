// Directions, named, default and ignored arguments, overloads, order of evaluation.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
bit<8> f(in bit<8> a, out bit<8> b, inout bit<8> c) { b = a; c = c + 1; return b; }
bit<8> d(in bit<8> a = 5, in bit<8> b = 3) { return a + b; }
bit<8> o(in bit<8> a) { return a; }
bit<8> o(in bit<8> a, in bit<8> b) { return b; }
bit<8> o(in bit<8> c, in bool e, in bit<8> g) { return e ? c : g; }
bit<8> bump(inout bit<8> z) { z = z + 1; return z; }
void add(inout bit<8> x, in bit<8> y) { x = x + y; }
action top_level(out bit<8> r, bit<8> data) { r = data; }
struct H { eth_t eth; h_t h; h_t g; h_t[3] st; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.eth);
        p.extract(hdr.h);
        p.extract(hdr.g);
        p.extract(hdr.st.next);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a(inout bit<8> q, bit<8> k) { q = q + k; }
    table t { key = { m.x : ternary; } actions = { a(m.x); .top_level(hdr.h.a); } default_action = a(m.x, 3); }
    apply {
        m.x = f(m.x, hdr.h.a, hdr.h.b) + f(1, m.x, hdr.h.a); f(1, _, m.x); f(c = m.x, a = 1, b = hdr.h.a);
        m.x = d(); m.x = d(1); m.x = d(b = 2); m.x = o(1); m.x = o(1, 2); m.x = o(1, true, 2); m.x = o(b = 2, a = 1);
        add(m.x, bump(m.x)); add(y = bump(m.x), x = m.x); hdr.st[bump(m.x)].a = bump(m.x); add(hdr.st[m.x].a, bump(m.x));
        m.f = m.x == 1 && bump(m.x) == 2 || bump(m.x) == 3; m.x = m.f ? bump(m.x) : 5;
        a(hdr.h.b, m.x); .top_level(m.x, 3); t.apply();
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
