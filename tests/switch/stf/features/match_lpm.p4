// The longest prefix wins, whatever the order of insertion.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action port(bit<9> p) { s.egress_spec = p; }
    table one { key = { h.d.w : lpm; } actions = { port; } }
    table two { key = { h.d.x : exact; h.d.w : lpm; } actions = { port; NoAction; } }
    apply { one.apply(); if (h.d.op == 1) { two.apply(); } }
}
#include "../rest.p4h"
