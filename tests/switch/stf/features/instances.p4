// Several instances of a control, and one applied twice.
#include "../first.p4h"
struct headers_t { data_t d; }
control Leaf(inout bit<8> v)(bit<8> n) {
  action go() { v = v + n; } 
  table t { actions = { go; } const default_action = go; }
  apply { t.apply(); if (v > 100) { return; } v = v * 2; } }
control Mid(inout bit<8> v) { Leaf(1) l; apply { l.apply(v); l.apply(v); } }
control Leaf2(inout bit<8> v) { apply { v = v + 1; } }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Mid() a; Mid() b;
    apply { s.egress_spec = 1; a.apply(h.d.x); b.apply(h.d.y); Leaf2.apply(h.d.z); }
}
#include "../rest.p4h"
