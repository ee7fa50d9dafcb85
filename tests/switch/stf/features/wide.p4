// Fields wider than a machine word.
#include <core.p4>
#include <v1model.p4>
header v6_t { bit<128> a; bit<128> b; bit<72> c; bit<8> op; }
struct headers_t { v6_t v; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.v); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action swap(bit<128> w) { h.v.a = w; }
    table t { key = { h.v.a : lpm; } actions = { swap; NoAction; } }
    apply {
        s.egress_spec = 1;
        switch (h.v.op) {
            0: { h.v.b = h.v.a + h.v.b; }
            1: { h.v.b = h.v.a - h.v.b; }
            2: { h.v.c = h.v.a[99:28]; h.v.b = h.v.b << 65; }
            3: { t.apply(); }
            4: { h.v.b = h.v.a * 3; h.v.c = ~h.v.c; }
        }
    }
}
#include "../rest.p4h"
