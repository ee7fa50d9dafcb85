// A clone of the packet as it came in, parsed anew, with the fields of a list and the rest zero.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(1) bit<8> kept; @field_list(1, 2) bit<8> both; bit<8> lost; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        m.kept = 1; m.both = 2; m.lost = 4;
        h.d.w = 0x1111;
        if (h.d.op == 1) { clone(CloneType.I2E, 5); }
        if (h.d.op == 2) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (h.d.op == 3) { clone_preserving_field_list(CloneType.I2E, 6, 2); }
        if (h.d.op == 4) { clone(CloneType.I2E, 5); m.both = 9; mark_to_drop(s); }
        if (h.d.op == 5) { clone(CloneType.I2E, 77); }
        m.kept = m.kept + 0x10;    // what a list has is taken at the end of ingress
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.x = m.kept + m.both + m.lost; h.d.y = (bit<8>)s.instance_type; h.d.z = (bit<8>)s.egress_port; }
}
#include "../rest.p4h"
