// Ranges and optional fields, signed ones too.
#include "../first.p4h"
header n_t { int<8> n; }
struct headers_t { data_t d; n_t n; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.n); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action port(bit<9> p) { s.egress_spec = p; }
    table ranges { key = { h.d.w : range; } actions = { port; } }
    table choice { key = { h.d.x : optional; h.d.y : optional; } actions = { port; } }
    table sign {
        key = { h.n.n : range; }
        actions = { port; NoAction; }
        const entries = { -5 .. 5 : port(9); }
    }
    apply {
        switch (h.d.op) { 0: { ranges.apply(); } 1: { choice.apply(); } 2: { sign.apply(); } }
    }
}
#include "../rest.p4h"
