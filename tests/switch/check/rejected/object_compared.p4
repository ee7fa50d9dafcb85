#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct H { h_t h; }
struct M { bit<8> x; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    counter(1, CounterType.packets) c;
    apply { (m.x == 1 ? c : c).count(0); }
}
