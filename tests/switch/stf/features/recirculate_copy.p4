// One copy of a multicast packet recirculated.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { if (s.instance_type == 4) { s.egress_spec = 5; h.d.w = h.d.w + (bit<16>)s.packet_length; } else { s.mcast_grp = 1; } h.d.x = h.d.x + 1; }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { if (s.egress_rid == 2 && s.instance_type == 5) { recirculate_preserving_field_list(0); } h.d.y = (bit<8>)s.egress_rid; } }
#include "../rest.p4h"
