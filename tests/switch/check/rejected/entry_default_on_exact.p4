#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; varbit<64> v; }
header g_t { bit<8> a; }
struct H { h_t h; g_t[3] s; }
struct M { bit<8> x; bool f; int<8> n; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a() { }
    table t { key = { m.x : ternary; m.n : exact; } actions = { a; } entries = { _ : a(); } }
    apply {
        t.apply();
    }
}
