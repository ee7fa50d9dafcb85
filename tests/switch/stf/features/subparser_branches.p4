// Sub-parsers applied in the branches of an if, one instance in several places, with variables of
// its own; what a second call of an instance extracted before it rejects stays.
#include <core.p4>
#include <v1model.p4>
header d_t { bit<8> kind; bit<8> sum; }
header item_t { bit<8> v; }
struct headers_t { d_t d; item_t[4] items; }
struct meta_t { bit<8> sum; }
#define HAS_PARSER
parser Item(packet_in p, out item_t item, inout bit<8> sum)(bit<8> weight) {
    bit<8> seen = 1;
    state start {
        p.extract(item);
        sum = sum + item.v * weight + seen;
        seen = 100;
        transition select(item.v) { 0xff: reject; default: accept; }
    }
}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Item(1) once;
    Item(2) twice;
    state start {
        p.extract(h.d);
        if (h.d.kind == 1) {
            once.apply(p, h.items[0], m.sum);
        } else if (h.d.kind == 2) {
            bit<8> before = m.sum + 16;
            twice.apply(p, h.items[0], m.sum);
            once.apply(p, h.items[1], m.sum);
            twice.apply(p, h.items[2], m.sum);
            m.sum = m.sum + before;
        } else {
            m.sum = 0x77;
        }
        m.sum = m.sum + 1;
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.d.sum = m.sum;
        for (bit<8> i in 0 .. 3) { if (h.items[i].isValid()) { h.items[i].v = i; } }
    }
}
#include "../rest.p4h"
