// A checksum in an invalid header is not verified, whatever the condition.
#include "../first.p4h"
header sum_t { bit<16> sum; bit<16> v; }
struct headers_t { data_t d; sum_t s; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition select(h.d.op) { 1: sum; default: accept; } }
    state sum { p.extract(h.s); transition accept; }
}
#define HAS_VERIFY
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(true, { h.s.v }, h.s.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(h.d.x == 1, { h.s.v }, h.s.sum, HashAlgorithm.csum16);
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.y = (bit<8>) s.checksum_error; }
}
#include "../rest.p4h"
