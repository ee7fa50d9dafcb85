// for over numbers and ranges, nested, with break and continue, with variables of its own.
#include "../first.p4h"
header item_t { bit<8> v; }
struct headers_t { data_t d; item_t[4] s; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.s[0]); p.extract(h.s[1]); p.extract(h.s[2]); p.extract(h.s[3]);
                  transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        bit<16> sum = 0;
        switch (h.d.op) {
            0: { for (bit<8> i = 0; i < h.d.x; i = i + 1) { sum = sum + (bit<16>)i; } }
            1: { for (bit<8> i in 1 .. h.d.x) { sum = sum + (bit<16>)i; } }
            2: { for (item_t one in h.s) { sum = sum + (bit<16>)one.v; } }
            3: {
                for (bit<8> i in 8w0 .. 9) {
                    if (i == 3) { continue; }
                    if (i == h.d.x) { break; }
                    sum = sum + 1;
                    for (bit<8> j in 8w0 .. 9) { if (j == 2) { break; } sum = sum + 0x100; }
                }
            }
            4: { for (bit<32> k = 0, bit<8> v = 1; k < 4; k = k + 1, v = v << 1) { h.s[k].v = v; } }
            5: { for (bit<8> i in {8w3, 5, 9}) { sum = sum * 10 + (bit<16>)i; } }
            6: { for (bit<8> i in 8w5 .. 4) { sum = 1; } }
            7: { for (bit<8> i in 8w250 .. 255) { sum = sum + 1; } }
        }
        h.d.w = sum;
    }
}
#include "../rest.p4h"
