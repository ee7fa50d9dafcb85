#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct S { bit<8> p; bit<16> q; }
struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bool f; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.s.next);  transition accept; }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a(bit<8> k) { m.x = k; }
    table t { key = { m.x : exact; } actions = { a; } support_timeout = 5; }
    apply { t.apply(); }
}
control V(inout H hdr, inout M m) { apply { } }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
