// Annotated actions, an empty key, hit in a negation.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action a() { h.d.y = 1; }
    action b() { h.d.y = 2; }
    @hidden table t { key = { h.d.x : exact; } actions = { a; @tableonly b; @defaultonly NoAction; }
      const default_action = NoAction; size = 8; const entries = { 1 : a(); 2 : b(); } }
    table empty { key = {} actions = { a; NoAction; } const default_action = a; }
    apply { s.egress_spec = 1; if (!t.apply().hit) { empty.apply(); h.d.z = 9; } 
      switch (t.apply().action_run) { a: {} NoAction: { h.d.w = 5; } } }
}
#include "../rest.p4h"
