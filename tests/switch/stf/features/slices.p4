// Slices read and assigned, also nested and signed; concatenation.
#include "../first.p4h"
header r_t { bit<4> hi; bit<4> lo; bit<16> cat; bit<8> edit; bit<24> three; bit<8> nested; bit<8> s; }
struct headers_t { data_t d; r_t r; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        bit<8> edit = h.d.x;
        edit[3:0] = h.d.y[7:4];
        edit[7:7] = 1;
        int<8> sx = -2;
        h.r = { h.d.x[7:4], h.d.x[3:0], h.d.x ++ h.d.y, edit, h.d.op ++ 4w5 ++ 12w0xabc,
                h.d.w[11:4][6:3] ++ 4w0, sx[6:0] ++ 1w1 };
        h.d.w[15:8] = 0x77;
        h.d.z[0:0] = ~h.d.z[0:0];
    }
}
#include "../rest.p4h"
