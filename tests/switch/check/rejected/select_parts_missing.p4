#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct H { h_t h; }
struct M { bit<8> x; }
struct S { bit<8> a; bit<8> b; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { S s = { 1, 2 }; transition select(m.x, s) { (1, 2): accept; } }
}
