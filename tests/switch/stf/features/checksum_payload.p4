// UDP's checksum, with the payload that the parser left, of even and odd length.
#include <core.p4>
#include <v1model.p4>
header ip_t { bit<32> src; bit<32> dst; bit<8> proto; bit<16> sum; }
header udp_t { bit<16> sport; bit<16> dport; bit<16> len; bit<16> sum; }
struct headers_t { ip_t ip; udp_t udp; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ip); p.extract(h.udp); transition accept; }
}
#define UDP_FIELDS {h.ip.src, h.ip.dst, 8w0, h.ip.proto, h.udp.len, h.udp.sport, h.udp.dport, h.udp.len}
#define HAS_VERIFY
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum_with_payload(h.udp.isValid(), UDP_FIELDS, h.udp.sum, HashAlgorithm.csum16);
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = (bit<9>)s.checksum_error + 1; h.ip.sum = 0x1111; }
}
#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum_with_payload(h.udp.isValid(), UDP_FIELDS, h.udp.sum, HashAlgorithm.csum16);
    }
}
#include "../rest.p4h"
