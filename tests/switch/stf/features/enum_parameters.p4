// Enums as constructor parameters, given on to externs.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> i; bit<16> crc; bit<16> sum; }
struct headers_t { h_t h; }
struct meta_t { }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control Inner(in bit<8> i, out bit<16> r)(HashAlgorithm a, CounterType t) {
    counter(4, t) seen;
    apply { hash(r, a, 16w0, { i }, 32w0x10000); seen.count(1); }
}
control Outer(in bit<8> i, out bit<16> r)(HashAlgorithm a) {
    Inner(a, CounterType.bytes) inner;
    apply { inner.apply(i, r); }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Outer(HashAlgorithm.identity) same;
    Outer(HashAlgorithm.csum16) sum;
    apply {
        s.egress_spec = 1;
        same.apply(h.h.i, h.h.crc);
        sum.apply(h.h.i, h.h.sum);
    }
}
#include "../rest.p4h"
