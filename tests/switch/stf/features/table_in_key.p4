// Whether one table has an entry is a key of another.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M { bit<8> x; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.h.b = v; }
    table u { key = { hdr.h.a : exact; } actions = { NoAction; } const entries = { 1 : NoAction(); } }
    table t { key = { u.apply().hit : exact @name("uhit"); } actions = { set; } const entries = { true : set(7); false : set(9); } }
    apply { t.apply(); sm.egress_spec = 1; }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
