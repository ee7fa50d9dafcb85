#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct H { h_t h; }
struct M { bit<8> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t sm) {
    @name(".set") action set(bit<8> x) { m.x = x; }
    table t { key = { m.x : exact; } actions = { set; } }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t sm) {
    @name(".set") action set(bit<8> y) { m.x = y; }
    table u { key = { m.x : exact; } actions = { set; } }
    apply { u.apply(); }
}
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
