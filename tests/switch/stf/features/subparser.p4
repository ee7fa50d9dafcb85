// A parser called by another, twice, with arguments; rejecting in it rejects the whole.
#include <core.p4>
#include <v1model.p4>
header len_t { bit<8> n; bit<8> seen; }
header tlv_t { bit<8> t; bit<8> v; }
struct headers_t { len_t l; tlv_t a; tlv_t b; }
struct meta_t { bit<8> sum; }
#define HAS_PARSER
parser Tlv(packet_in p, out tlv_t tlv, inout bit<8> sum, in bit<8> wanted)(bit<8> add) {
    bit<8> twice = 0;
    state start {
        p.extract(tlv);
        twice = tlv.v + tlv.v;
        sum = sum + twice + add;
        transition select(tlv.t) {
            0xff: reject;
            default: check;
        }
    }
    state check { verify(tlv.t == wanted, error.NoMatch); transition accept; }
}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Tlv(1) one;
    Tlv(16) other;
    state start {
        p.extract(h.l);
        one.apply(p, h.a, m.sum, 1);
        transition select(h.l.n) { 1: accept; 2: second; 3: again; }
    }
    state second { other.apply(p, h.b, m.sum, 2); transition accept; }
    state again { one.apply(p, h.b, m.sum, 1); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.l.seen = m.sum;
        if (s.parser_error != error.NoError) { s.egress_spec = 2; }
        if (h.b.isValid()) { h.b.v = h.b.v + 1; }
    }
}
#include "../rest.p4h"
