// Operators, casts, slices, literals in context.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
enum E1 { A, B }
enum bit<8> E2 { A = 1, B = 2, C = 1 }
type bit<9> port_t;
typedef tuple<bit<8>, bool> pair_t;
const int BIG = 1 << 200;
const bit<8> K = 5;
const M CM = { K, 4, true };
const pair_t CT = { 1, true };
const bool SAME = exact == lpm;
const bool CHECKED = static_assert(BIG > 5, "arithmetic");
typedef bit<(K * 2)> ten_t;
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
@noWarn("unused") @noWarn("always") control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        bit<32> shifted = 1 << 5;
        sm.egress_spec = (bit<9>) hdr.h.c[8:0];
        m.x = m.x |+| 1; m.x |-|= 1; m.x <<= 2; m.x[3:0] = 4w2; m.x[4+:4] = 4w1;
        int<8> s = -1; int<8> t = s >> 1; m.x = (bit<8>)s; m.f = s < 0;
        m.y = m.x ++ 8w1; m.y = (bit<16>)(int<16>)s;
        m.x = (bit<8>)(BIG >> 198); m.x = 10 / 3; m.x = (bit<8>)(5 - 10 + 6); m.x = m.x / 2 % 4;
        m.f = hdr.h == hdr.g; m.f = hdr.st == hdr.st; M m2 = m; m.f = m2 != m; m.f = hdr.h == {#};
        m.f = { 1, m.x } == { m.x, 2 }; m.f = sm.parser_error != error.NoError; m.f = SAME && CHECKED;
        pair_t pair = { 1, true }; m.x = pair[0]; pair = CT; m.f = pair == { 2, false };
        m = { 1, 2, true }; m = { y = 2, x = 1, f = false }; m = { x = 1, ... }; m = ...; m = (M){ 1, 2, true };
        hdr.h = { 1, 2, 3, 4 }; hdr.h = { d = 1, ... }; hdr.st = { { 1, 2, 3, 4 }, {#}, ... };
        m.x = true ? 8w1 : 2; m.x = m.f ? m.x : 3; m.x = hdr.h.isValid() ? 8w1 : 0;
        E1 e = E1.A; m.f = e == E1.B; E2 e2 = (E2)m.x; m.x = E2.B; m.x = e2 + 1; m.f = e2 == 8w1;
        port_t port = (port_t) sm.egress_spec; sm.egress_spec = (bit<9>) port; m.f = port == (port_t)3;
        ten_t ten = 3; m.y = (bit<16>)ten; bit<(CM.x)> five = 0; bit<(CT[0] + 3)> four = 1; bit<0> nothing;
        m.x = h_t.minSizeInBytes(); shifted = hdr.st.size; shifted = hdr.minSizeInBits();
        m.f = (bit<8>)five ++ four == 12w1;
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
