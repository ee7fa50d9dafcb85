// Generic functions, structs and headers; inference.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
struct S<T> { T f; bool v; }
struct G<T> { S<T> s; }
header HG<T> { T f; }
header_union UG<T> { HG<bit<8>> a; HG<T> b; }
typedef S<bit<8>> SB;
const G<bit<32>> CG = { s = { f = 0, v = false } };
T pick<T>(in bool c, in T a, in T b) { if (c) { return a; } return b; }
void swap<T>(inout T a, inout T b) { T t = a; a = b; b = t; }
bit<8> first(in M m) { return m.x; }
T nothing<T>() { return ...; }
struct H { eth_t eth; h_t h; h_t g; h_t[3] st; HG<bit<16>> gh; HG<bit<8>>[4] gs; UG<bit<24>> gu; }

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
    apply {
        SB s = { 1, true }; G<bit<8>> g = { { 1, true } }; m.x = s.f + g.s.f; m.f = s == { 2, false };
        hdr.gh = { f = 2 }; hdr.gu.b = { 5 }; hdr.gs[1] = { 3 }; m.x = hdr.gs[1].f; m.y = hdr.gh.f;
        m.x = pick(m.f, m.x, 3); hdr.h = pick(m.f, hdr.h, hdr.g); m.x = pick<bit<8>>(true, 1, 2);
        swap(m.x, hdr.h.a); swap(hdr.h, hdr.g); m.x = first({ 1, 2, true }); m.x = nothing<bit<8>>();
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
