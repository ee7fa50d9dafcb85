// Registers of 128 bits and of signed numbers.
#include "../first.p4h"
header w_t { bit<128> v; }
struct headers_t { data_t d; w_t w; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.w); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<128>>(2) r; register<int<48>>(2) q;
    apply { s.egress_spec = 1; bit<128> v; r.read(v, 1); r.write(1, v + h.w.v); h.w.v = v; int<48> n; q.read(n, 0); q.write(0, n - 1); h.d.w = (bit<16>)(bit<48>)(n >> 4); }
}
#include "../rest.p4h"
