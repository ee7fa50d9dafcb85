// A varbit field with its size computed; errors of a size that does not fit.
#include <core.p4>
#include <v1model.p4>
header base_t { bit<8> words; bit<8> seen; }
header opts_t { bit<8> kind; varbit<64> data; }
header end_t { bit<8> v; }
struct headers_t { base_t b; opts_t o; opts_t copy; end_t e; }
struct meta_t { bit<8> x; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.b);
        p.extract(h.o, (bit<32>)h.b.words * 8);
        p.extract(h.e);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (s.parser_error == error.HeaderTooShort) { h.b.seen = 1; }
        if (s.parser_error == error.PacketTooShort) { h.b.seen = 2; }
        if (h.o.isValid() && h.o.kind == 7) { h.copy = h.o; h.copy.kind = 8; }
    }
}
#include "../rest.p4h"
