// An instance applied more than once, and one within it: an out argument starts invalid each time.
#include <core.p4>
#include <v1model.p4>
header b_t { bit<8> v; }
struct headers_t { b_t d; b_t a; b_t b; b_t c; }
struct meta_t { bit<8> x; }
parser In(packet_in p, out b_t b) {
    state start { transition select(p.lookahead<bit<8>>()) { 7: skip; default: take; } }
    state take { p.extract(b); transition accept; }
    state skip { p.advance(8); transition accept; }
}
@noWarn("uninitialized_use") parser Mid(packet_in p, out b_t b, inout bit<8> n) {
    In() i;
    state start { i.apply(p, b); bit<8> k; k = k + 1; n = n + k; transition accept; }
}
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Mid() mid;
    state start {
        mid.apply(p, h.a, m.x);
        mid.apply(p, h.b, m.x);
        mid.apply(p, h.c, h.a.v);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.setValid(); h.d.v = m.x; }
}
#include "../rest.p4h"
