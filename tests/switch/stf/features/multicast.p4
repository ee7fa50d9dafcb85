// Replicas with their rid; the group wins over egress_spec; a group of nothing drops.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 9; s.mcast_grp = h.d.w; if (h.d.op == 1) { mark_to_drop(s); } }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.x = (bit<8>)s.egress_rid;
        h.d.y = (bit<8>)s.egress_port;
        h.d.z = (bit<8>)s.instance_type;
        if (s.egress_port == s.ingress_port) { mark_to_drop(s); }
    }
}
#include "../rest.p4h"
