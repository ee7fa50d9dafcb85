// Each algorithm over the same five bytes (values from zlib and by hand); base and maximum.
#include <core.p4>
#include <v1model.p4>
header in_t { bit<8> a; bit<16> b; bit<16> c; }
header out_t { bit<32> crc32; bit<16> crc16; bit<16> csum16; bit<16> xor16; bit<16> identity;
               bit<8> mod; bit<8> based; bit<8> zero; bit<16> bits; }
struct headers_t { in_t i; out_t o; }
struct meta_t { bit<8> unused; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.i); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.o.setValid();
        hash(h.o.crc32, HashAlgorithm.crc32, 32w0, {h.i.a, h.i.b, h.i.c}, 64w0x1_0000_0000);
        hash(h.o.crc16, HashAlgorithm.crc16, 16w0, {h.i.a, h.i.b, h.i.c}, 32w0x10000);
        hash(h.o.csum16, HashAlgorithm.csum16, 16w0, {h.i.a, h.i.b, h.i.c}, 32w0x10000);
        hash(h.o.xor16, HashAlgorithm.xor16, 16w0, {h.i.a, h.i.b, h.i.c}, 32w0x10000);
        hash(h.o.identity, HashAlgorithm.identity, 16w0, {h.i.c}, 32w0x10000);
        hash(h.o.mod, HashAlgorithm.crc16, 8w0, {h.i.a, h.i.b}, 16w100);
        hash(h.o.based, HashAlgorithm.identity, 8w10, {h.i.a}, 8w3);
        hash(h.o.zero, HashAlgorithm.crc32, 8w7, {h.i.a}, 8w0);
        hash(h.o.bits, HashAlgorithm.crc16, 16w0, {h.i.a[3:0], h.i.b[3:0]}, 32w0x10000);
    }
}
#include "../rest.p4h"
