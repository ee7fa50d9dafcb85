#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
parser P(packet_in p, out h_t h) {
    value_set<bit<8>>(4) known;
    state start {
        p.extract(h);
        transition select(h.a, h.b) { (5, known): accept; default: reject; }
    }
}
