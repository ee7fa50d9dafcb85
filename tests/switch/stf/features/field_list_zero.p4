// List 0 is a list like any other: `clone` without one keeps nothing.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(0) bit<8> kept; }
struct headers_t { data_t d; }
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.x = m.kept;
        if (s.instance_type == 0) {
            m.kept = 7;
            if (h.d.op == 1) { clone_preserving_field_list(CloneType.E2E, 5, 0); }
            if (h.d.op == 2) { clone(CloneType.E2E, 5); }
        }
    }
}
#include "../rest.p4h"
