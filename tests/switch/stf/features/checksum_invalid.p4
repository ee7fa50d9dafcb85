// Fields of invalid headers are left out of a checksum's list: named, as a header, in a struct, and
// where the list was copied into a variable or metadata before.
#include <core.p4>
#include <v1model.p4>
header w_t { bit<16> v; }
header sums_t { bit<16> a; bit<16> b; bit<16> c; bit<16> d; bit<16> e; bit<16> f; }
struct headers_t { sums_t sums; w_t x; w_t y; w_t z; }
struct list_t { bit<16> x; bit<16> y; bit<16> z; }
struct three_t { w_t x; w_t y; w_t z; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.sums); p.extract(h.x); p.extract(h.y); p.extract(h.z);
                  transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; if (h.y.v == 0xffff) { h.y.v = 0x7777; h.y.setInvalid(); } }
}
#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(true, {h.x.v, h.y.v, h.z.v}, h.sums.a, HashAlgorithm.csum16);
        update_checksum(true, {h.x, h.y, h.z}, h.sums.b, HashAlgorithm.csum16);
        three_t copy = {h.x, h.y, h.z};
        update_checksum(true, copy, h.sums.c, HashAlgorithm.csum16);
        update_checksum(true, {copy.x.v, copy.y.v, copy.z.v}, h.sums.d, HashAlgorithm.csum16);
        list_t list = {h.x.v, h.y.v, h.z.v};
        update_checksum(true, list, h.sums.e, HashAlgorithm.crc16);
        if (h.x.isValid()) {
            tuple<bit<16>, bit<16>, bit<16>> again = {h.x.v, h.y.v, h.z.v};
            update_checksum(true, again, h.sums.f, HashAlgorithm.crc16);
        }
    }
}
#include "../rest.p4h"
