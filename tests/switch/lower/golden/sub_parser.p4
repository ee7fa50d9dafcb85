// A sub-parser's states become states of the parser, one copy for each apply.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t g; h_t[2] s; }
struct M { bit<8> x; bit<8> y; bool f; }
parser Q(packet_in p, out h_t h) {
    state start { p.extract(h); transition select(h.a) { 1: more; default: reject; } }
    state more { transition accept; }
}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    Q() q;
    state start {
        p.extract(hdr.h);
        q.apply(p, hdr.g);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
