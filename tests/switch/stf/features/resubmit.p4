// A resubmitted packet is the one that came in, with its list's metadata.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(1) bit<8> rounds; bit<8> lost; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.d.y = (bit<8>)s.instance_type;
        h.d.w = (bit<16>)(m.rounds + m.lost);
        m.lost = 0x80;
        if (m.rounds < h.d.x) {
            m.rounds = m.rounds + 1;
            h.d.z = 0xee;                       // not resubmitted
            if (h.d.op == 0) { resubmit_preserving_field_list(1); }
            else if (s.instance_type == 0) { resubmit_preserving_field_list(0); mark_to_drop(s); }
        }
    }
}
#include "../rest.p4h"
