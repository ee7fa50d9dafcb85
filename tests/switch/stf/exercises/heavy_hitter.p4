// A count-min sketch of three rows; a flow over the threshold is marked and reported once.
#include "../ip.p4h"
#define WIDTH 64
#define THRESHOLD 3
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<32> least; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); p.extract(h.ipv4); transition accept; }
}

control Row(in bit<32> at, inout bit<32> least) {
    register<bit<32>>(WIDTH) cells;
    apply {
        bit<32> n;
        cells.read(n, at);
        n = n + 1;
        cells.write(at, n);
        if (n < least) { least = n; }
    }
}

#define FLOW { h.ipv4.src, h.ipv4.dst }

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Row() one;
    Row() two;
    Row() three;
    apply {
        bit<32> a;
        bit<32> b;
        bit<32> c;
        hash(a, HashAlgorithm.crc16, 32w0, FLOW, 32w64);
        hash(b, HashAlgorithm.crc32, 32w0, FLOW, 32w64);
        hash(c, HashAlgorithm.csum16, 32w0, FLOW, 32w64);
        m.least = 0xffffffff;
        one.apply(a, m.least);
        two.apply(b, m.least);
        three.apply(c, m.least);
        s.egress_spec = 2;
        h.ipv4.id = (bit<16>)m.least;
        if (m.least > THRESHOLD) { h.ipv4.dscp = 1; }
        if (m.least == THRESHOLD + 1) { digest(1, { h.ipv4.src, h.ipv4.dst, m.least }); }
    }
}
#include "../rest.p4h"
