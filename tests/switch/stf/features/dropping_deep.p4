// mark_to_drop() in a control that has the standard metadata as a parameter.
#include "../first.p4h"
struct headers_t { data_t d; }
control Filter(inout headers_t h, inout standard_metadata_t std) {
    action old_drop() { mark_to_drop(); }
    table t { key = { h.d.x : exact; } actions = { old_drop; NoAction; } const entries = { 1 : old_drop; } }
    apply { std.egress_spec = 2; t.apply(); if (h.d.y == 1) { mark_to_drop(); } }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Filter() f;
    apply { f.apply(h, s); }
}
#include "../rest.p4h"
