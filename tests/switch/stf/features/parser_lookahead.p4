// lookahead takes nothing; advance skips; length is known.
#include <core.p4>
#include <v1model.p4>
header short_t { bit<8> tag; bit<8> v; }
header long_t { bit<8> tag; bit<24> v; }
header peek_t { bit<4> hi; bit<4> lo; bit<8> next; }
header seen_t { bit<8> hi; bit<8> next; bit<32> length; }
struct headers_t { seen_t seen; short_t s; long_t l; }
#define HAS_PARSER
struct meta_t { bit<8> x; }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        peek_t peek = p.lookahead<peek_t>();
        h.seen.setValid();
        h.seen.hi = (bit<8>)peek.hi;
        h.seen.next = peek.next;
        h.seen.length = p.length();
        transition select(p.lookahead<bit<8>>()) {
            0x01: short_one;
            0x02: long_one;
            0x03: skip;
            default: accept;
        }
    }
    state short_one { p.extract(h.s); transition accept; }
    state long_one { p.extract(h.l); transition accept; }
    state skip { p.advance(16); transition select(p.lookahead<bit<4>>()) {
        0: short_one;
        _: accept;
    } }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.s.isValid()) { s.egress_spec = 2; h.s.v = 0xee; }
        if (h.l.isValid()) { s.egress_spec = 3; }
    }
}
#include "../rest.p4h"
