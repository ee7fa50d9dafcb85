// Exact keys of several kinds; entries by STF with names shortened.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<8> local = 0;
    action set_port(bit<9> port) { s.egress_spec = port; }
    action mark(bit<8> v, bit<16> w) { s.egress_spec = 4; h.d.z = v; h.d.w = w; }
    action drop() { mark_to_drop(s); }
    table t {
        key = { h.d.x : exact; s.ingress_port : exact; local : exact @name("sum"); }
        actions = { set_port; mark; @defaultonly drop; }
        default_action = drop;
    }
    apply { local = h.d.x + h.d.y; t.apply(); }
}


#include "../rest.p4h"
