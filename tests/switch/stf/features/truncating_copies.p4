// truncate concerns the packet that leaves: replicas and a recirculated packet are whole.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(1) bit<8> passes; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.d.op != 3) { truncate(8); }
        if (h.d.op == 1) { s.mcast_grp = 4; }
        if (h.d.op == 2) { clone(CloneType.I2E, 5); }
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.d.op == 3 && m.passes == 0) {
            truncate(7);
            m.passes = m.passes + 1;
            recirculate_preserving_field_list(1);
        } else {
            h.d.w = s.packet_length[15:0];
        }
    }
}
#include "../rest.p4h"
