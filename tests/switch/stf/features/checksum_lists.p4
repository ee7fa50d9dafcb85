// A checksum's list filled member by member, nested, or before a branch: fields of invalid headers
// are left out all the same; a field that changed after it was put in the list keeps its old value.
#include <core.p4>
#include <v1model.p4>
header w_t { bit<16> v; }
header sums_t { bit<16> a; bit<16> b; bit<16> c; bit<16> d; }
struct headers_t { sums_t sums; w_t x; w_t y; w_t z; }
struct two_t { bit<16> x; bit<16> y; }
struct list_t { two_t two; bit<16> z; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.sums); p.extract(h.x); p.extract(h.y); p.extract(h.z);
                  transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; if (h.y.v == 0xffff) { h.y.setInvalid(); } }
}
#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply {
        list_t list;
        list.z = h.z.v;
        list.two.x = 5;
        list.two.y = h.y.v;
        list.two.x = h.x.v;
        update_checksum(true, list, h.sums.a, HashAlgorithm.crc16);
        tuple<two_t, bit<16>> pair = { list.two, list.z };
        if (h.x.isValid()) {
            update_checksum(true, pair, h.sums.b, HashAlgorithm.crc16);
        }
        list_t copy = list;
        update_checksum(true, copy, h.sums.c, HashAlgorithm.crc16);
        bit<16> kept = h.x.v;
        h.x.v = 0;
        update_checksum(true, list, h.sums.d, HashAlgorithm.crc16);
        h.x.v = kept;
    }
}
#include "../rest.p4h"
