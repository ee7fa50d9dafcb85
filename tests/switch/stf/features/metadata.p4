// Standard metadata: what is set where.
#include "../first.p4h"
header r_t { bit<8> inp; bit<8> outp; bit<8> spec; bit<8> kind; bit<16> len; bit<16> len2; bit<8> err; }
struct headers_t { data_t d; r_t r; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.r.setValid();
        h.r.inp = (bit<8>)s.ingress_port;
        h.r.len = (bit<16>)s.packet_length;
        h.r.err = (bit<8>)s.checksum_error;
        h.r.spec = (bit<8>)s.egress_spec;
        s.egress_spec = 6;
        s.priority = 5;
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.r.outp = (bit<8>)s.egress_port;
        h.r.kind = (bit<8>)s.instance_type;
        h.r.len2 = (bit<16>)s.packet_length;
        if (s.ingress_global_timestamp == 0 || s.egress_global_timestamp < s.ingress_global_timestamp) {
            h.r.err = 0xff;
        }
    }
}
#include "../rest.p4h"
