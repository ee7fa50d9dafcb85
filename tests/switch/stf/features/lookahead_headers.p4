// Lookahead at structs that hold headers and stacks, at headers with structs in them.
#include <core.p4>
#include <v1model.p4>
struct halves_t { bit<4> high; bit<4> low; }
header byte_t { bit<8> v; }
header split_t { halves_t halves; bool flag; bit<7> rest; }
struct ahead_t { byte_t first; byte_t[2] more; halves_t halves; }
header d_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { d_t d; byte_t first; byte_t[2] more; split_t split; byte_t halves; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        ahead_t ahead = p.lookahead<ahead_t>();
        h.first = ahead.first;
        h.more = ahead.more;
        h.split = p.lookahead<split_t>();
        p.extract(h.d);
        h.halves = { ahead.halves.low ++ ahead.halves.high };
        transition select(h.split.flag, h.split.halves.high) {
            (true, 1): accept;
            default: others;
        }
    }
    state others { m.unused = 1; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = s.parser_error == error.NoError ? 9w1 : 9w3;
        if (m.unused == 1) { s.egress_spec = 2; }
    }
}
#include "../rest.p4h"
