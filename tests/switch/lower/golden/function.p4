// A function is inlined: parameters by reference, a return as a leave.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t g; h_t[2] s; }
struct M { bit<8> x; bit<8> y; bool f; }
bit<8> f(in bit<8> a, inout bit<8> b) {
    if (a == 1) { return 2; }
    b = a;
    return b;
}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        m.x = f(m.x, m.y);
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
