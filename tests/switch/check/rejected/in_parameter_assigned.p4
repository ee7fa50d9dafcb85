#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; varbit<64> v; }
header g_t { bit<8> a; }
struct H { h_t h; g_t[3] s; }
struct M { bit<8> x; bool f; int<8> n; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a(in bit<8> v) { v = 3; }
    table t { actions = { a(m.x); } }
    apply {
        t.apply();
    }
}
