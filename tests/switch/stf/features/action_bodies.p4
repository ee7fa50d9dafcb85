// Conditions, returns and calls of functions with loops in an action.
#include "../first.p4h"
struct headers_t { data_t d; }
bit<8> sum(in bit<8> n) { bit<8> t = 0; for (bit<8> i in 1 .. n) { if (i == 5) { return t; } t = t + i; } return t; }
bool odd(in bit<8> n) { return n[0:0] == 1; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action setif(bit<8> v) { if (odd(v)) { h.d.y = v; } else if (v > 8) { h.d.y = 8; return; } h.d.z = sum(v); }
    table t { key = { h.d.x : exact; } actions = { setif; } }
    apply { s.egress_spec = 1; t.apply(); }
}
#include "../rest.p4h"
