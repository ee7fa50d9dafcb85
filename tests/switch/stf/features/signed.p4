// int<W>: comparison, saturation at both ends, multiplication, negation, unsigned casts.
#include "../first.p4h"
header i_t { int<8> a; int<8> b; }
header r_t { int<8> add; int<8> sub; int<8> mul; int<8> neg; int<8> sadd; int<8> ssub;
             bit<8> less; int<16> wide; bit<16> bits; int<8> shr; int<8> shl; }
struct headers_t { i_t i; r_t r; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.i); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        int<8> a = h.i.a;
        int<8> b = h.i.b;
        bit<8> less = 0;
        if (a < b) { less = less | 1; }
        if (a <= b) { less = less | 2; }
        if (a > b) { less = less | 4; }
        if (a >= -1) { less = less | 8; }
        h.r = { a + b, a - b, a * b, -a, a |+| b, a |-| b, less, (int<16>)a, (bit<16>)(int<16>)b,
                a >> 2, b << 3 };
    }
}
#include "../rest.p4h"
