// next beyond the end, last of an empty stack, lastIndex in select.
#include "../first.p4h"
header i_t { bit<8> v; }
struct headers_t { data_t d; i_t[2] s; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition select(h.d.x) { 1: last_of_none; default: n; } }
    state last_of_none { m.unused = h.s.last.v; transition accept; }
    state n { p.extract(h.s.next); p.extract(h.s.next); transition select(h.s.lastIndex) { 1: more; default: accept; } }
    state more { p.extract(h.s.next); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; if (s.parser_error == error.StackOutOfBounds) { h.d.y = 1; } }
}
#include "../rest.p4h"
