// Fields of variable length are equal if their lengths are, too (P4_16, 8.10).
#include <core.p4>
#include <v1model.p4>
header base_t { bit<8> one; bit<8> two; bit<8> seen; }
header opts_t { varbit<64> data; }
struct headers_t { base_t b; opts_t o; opts_t p; }
struct meta_t { bit<8> x; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.b);
        p.extract(h.o, (bit<32>)h.b.one * 8);
        p.extract(h.p, (bit<32>)h.b.two * 8);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.o.data == h.p.data) { h.b.seen = 1; }
        if (h.o.data != h.p.data) { h.b.seen = h.b.seen + 2; }
    }
}
#include "../rest.p4h"
