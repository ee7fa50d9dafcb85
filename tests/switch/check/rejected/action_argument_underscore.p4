#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct H { h_t h; }
struct M { bit<8> x; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action a(out bit<8> x) { x = 1; }
    table t { actions = { a(_); } }
    apply { t.apply(); }
}
