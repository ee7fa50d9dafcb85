// mark_to_drop with and without argument, undone, in ingress and in egress.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action old_drop() { mark_to_drop(); }
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            1: { drop(); }
            2: { mark_to_drop(); }
            3: { drop(); s.egress_spec = 2; }
            4: { s.egress_spec = 511; }
            5: { old_drop(); h.d.x = 9; s.egress_spec = 3; }
        }
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.d.x == 1) { mark_to_drop(s); }
        if (h.d.x == 2) { mark_to_drop(); }
        if (h.d.x == 3) { s.egress_spec = 5; }     // too late
        if (h.d.x == 4) { mark_to_drop(s); s.egress_spec = 0; }
    }
}
#include "../rest.p4h"
