// A clone of the packet as egress leaves it, sent through egress once more.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(3) bit<8> kept; bit<8> lost; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; m.kept = 1; m.lost = 4; }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.x = h.d.x + m.kept + m.lost;
        h.d.y = h.d.y + 1;
        h.d.z = (bit<8>)s.instance_type;
        if (s.instance_type == 0 && h.d.op == 1) {
            m.kept = 2;
            clone_preserving_field_list(CloneType.E2E, 5, 3);
            h.d.w = 0x2222;
        }
        if (s.instance_type == 0 && h.d.op == 2) { clone(CloneType.E2E, 5); mark_to_drop(s); }
    }
}
#include "../rest.p4h"
