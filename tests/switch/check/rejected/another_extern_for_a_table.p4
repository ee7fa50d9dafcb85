#include <core.p4>
#include <v1model.p4>
struct H { }
struct M { bit<8> x; }
control Sum(inout bit<8> x, register<bit<8>> r) {
    action add() { r.write(0, x); }
    table t { actions = { add; } default_action = add(); }
    apply { t.apply(); }
}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<8>>(1) ra;
    register<bit<8>>(1) rb;
    Sum() sum;
    apply {
        sum.apply(m.x, ra);
        sum.apply(m.x, ra);
        sum.apply(m.x, rb);
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
