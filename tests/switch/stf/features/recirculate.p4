// A recirculated packet is the one that egress made, deparsed.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(1) bit<8> rounds; bit<8> lost; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.y = (bit<8>)s.instance_type; h.d.z = m.rounds + m.lost; }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.d.x != 0) {
            h.d.x = h.d.x - 1;
            m.rounds = m.rounds + 2;
            m.lost = 0x80;
            h.d.w = h.d.w + (bit<16>)s.packet_length;
            recirculate_preserving_field_list(1);
        }
    }
}
#include "../rest.p4h"
