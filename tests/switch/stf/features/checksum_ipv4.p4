// IPv4's header checksum verified and computed anew; a condition that leaves it alone.
#include <core.p4>
#include <v1model.p4>
header ip_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst;
}
struct headers_t { ip_t ip; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ip); transition accept; }
}
#define IP_FIELDS {h.ip.version, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.flags, h.ip.frag, \
                   h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst}
#define HAS_VERIFY
control V(inout headers_t h, inout meta_t m) {
    apply { verify_checksum(h.ip.tos != 1, IP_FIELDS, h.ip.sum, HashAlgorithm.csum16); }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = s.checksum_error == 1 ? 9w2 : 1;
        h.ip.ttl = h.ip.ttl - 1;
    }
}
#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply { update_checksum(h.ip.tos != 1, IP_FIELDS, h.ip.sum, HashAlgorithm.csum16); }
}
#include "../rest.p4h"
