// Shifts by constants and by variables, beyond the width, of signed values.
#include "../first.p4h"
header r_t { bit<8> l; bit<8> r; bit<8> al; int<8> ar; bit<8> c; bit<16> w; bit<4> n; bit<4> pad; }
struct headers_t { data_t d; r_t r; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        int<8> v = (int<8>)h.d.x;
        h.r = { h.d.x << h.d.y, h.d.x >> h.d.y, (bit<8>)(v << h.d.y), v >> h.d.y,
                8w1 << 9, h.d.w >> h.d.y, 4w1 << h.d.y, 0 };
    }
}
#include "../rest.p4h"
