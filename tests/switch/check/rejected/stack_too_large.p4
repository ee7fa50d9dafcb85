#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
header v_t { bit<8> n; varbit<64> v; }
struct H { h_t h; h_t[3] s; v_t v; }
struct M { bit<8> x; bool f; int<8> n; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        h_t[5000] s;
        h_t[0] t;
    }
}
