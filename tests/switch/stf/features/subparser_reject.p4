// What a sub-parser extracted before it rejects stays: too short, reject, verify; in two layers,
// and in a state that runs more than once.
#include <core.p4>
#include <v1model.p4>
header d_t { bit<8> kind; bit<8> seen; }
header b_t { bit<16> v; }
header item_t { bit<8> last; }
struct headers_t { d_t d; b_t a; b_t b; item_t[2] items; item_t final; }
struct meta_t { bit<8> rounds; }
#define HAS_PARSER
parser Pair(packet_in p, out b_t a, out b_t b) {
    state start { p.extract(a); p.extract(b); transition accept; }
}
parser Item(packet_in p, out item_t item, inout bit<8> rounds) {
    state start {
        p.extract(item);
        rounds = rounds + 1;
        verify(item.last < 9, error.NoMatch);
        transition accept;
    }
}
parser Sub(packet_in p, out headers_t h, inout meta_t m) {
    Pair() pair;
    Item() item;
    state start {
        p.extract(h.d);
        transition select(h.d.kind) { 1: two; 2: looping; 3: reject; default: accept; }
    }
    state two { pair.apply(p, h.a, h.b); transition accept; }
    state looping {
        item.apply(p, h.final, m.rounds);
        transition select(h.final.last) { 0: looping; default: accept; }
    }
}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Sub() sub;
    state start { sub.apply(p, h, m); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.d.seen = m.rounds;
        if (s.parser_error != error.NoError) { s.egress_spec = 2; }
        if (h.a.isValid()) { h.a.v = 0xaaaa; }
        if (h.b.isValid()) { h.b.v = 0xbbbb; }
        if (h.final.isValid()) { h.final.last = 0xff; }
    }
}
#include "../rest.p4h"
