#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    table t {
        key = { hdr.h.a: exact; }
        actions = { NoAction; }
        size = 1 << 31;
    }
    table u {
        key = { hdr.h.a: exact; }
        actions = { NoAction; }
        size = -1;
    }
    apply { t.apply(); u.apply(); }
}
