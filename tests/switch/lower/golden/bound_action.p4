// A table binds its own arguments: an action body of its own, one name.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t g; h_t[2] s; }
struct M { bit<8> x; bit<8> y; bool f; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(out bit<8> r, in bit<8> v, bit<8> k) { r = v + k; }
    table t { actions = { set(m.x, m.y); } default_action = set(m.x, m.y, 3); }
    table u { actions = { set(m.y, 1); } default_action = set(m.y, 1, 4); }
    apply {
        t.apply();
        u.apply();
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
