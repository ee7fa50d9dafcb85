// Actions with arguments bound in the table's list.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action a(inout bit<8> x, bit<8> y) { x = y; }
    table t { key = { h.d.x + 1 : exact @name("k"); } actions = { a(h.d.z); NoAction; } const default_action = a(h.d.z, 3); }
    table t2 { key = { h.d.y : exact; } actions = { a(h.d.y); } default_action = a(h.d.y, 7); const entries = { 5 : a(h.d.y, 9); } }
    apply { s.egress_spec = 1; t.apply(); if (t2.apply().hit) { h.d.w = 1; } }
}
#include "../rest.p4h"
