// Ternary entries by priority: the larger wins in STF; with equal ones the first added.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action port(bit<9> p) { s.egress_spec = p; }
    action drop() { mark_to_drop(s); }
    table t {
        key = { h.d.w : ternary; h.d.x : ternary; }
        actions = { port; drop; }
        const default_action = drop();
    }
    apply { t.apply(); }
}
#include "../rest.p4h"
