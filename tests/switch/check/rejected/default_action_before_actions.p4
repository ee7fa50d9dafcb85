#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct S { bit<8> p; bit<16> q; }
struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bool f; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a(bit<8> k) { m.x = k; }
    table t { default_action = a(1); actions = { a; } }
    apply { t.apply(); }
}
