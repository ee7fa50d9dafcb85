// Checksums that are no internet checksum, with conditions and invalid headers.
#include "../first.p4h"
header w_t { bit<16> v; }
struct headers_t { data_t d; w_t a; w_t b; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.a); transition accept; }
}
#define HAS_VERIFY
@noWarn("invalid_header") control V(inout headers_t h, inout meta_t m) { apply { verify_checksum(true, {h.a.v, h.b.v}, h.d.w, HashAlgorithm.crc16); } }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.x = (bit<8>)s.checksum_error; }
}
#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) { apply { update_checksum(h.d.isValid() && h.d.y == 0, {h.a.v, h.b}, h.d.w, HashAlgorithm.xor16); } }
#include "../rest.p4h"
