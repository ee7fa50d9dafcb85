// exit two controls deep: direct arguments keep their values, a local copy is lost.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control Deep(inout data_t d) { action leave() { d.x = 1; exit; } table t { actions = { leave; } default_action = leave; } apply { d.y = 1; t.apply(); d.y = 2; } }
control Mid(inout data_t d) { Deep() deep; apply { data_t c = d; deep.apply(c); d = c; } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Mid() mid; Deep() deep;
    apply { s.egress_spec = 1; if (h.d.op == 1) { mid.apply(h.d); } else { deep.apply(h.d); } h.d.z = 1; }
}
#include "../rest.p4h"
