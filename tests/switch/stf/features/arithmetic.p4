// Unsigned arithmetic wraps; saturating does not; bit operations; constants of any width.
#include "../first.p4h"
header r_t { bit<8> add; bit<8> sub; bit<8> mul; bit<8> neg; bit<8> sadd; bit<8> ssub;
             bit<8> and; bit<8> or; bit<8> xor; bit<8> not; bit<8> konst; bit<8> wide; }
struct headers_t { data_t d; r_t r; }
const bit<16> BIG = (1 << 12) - 7 * 3;
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        bit<8> x = h.d.x;
        bit<8> y = h.d.y;
        h.r.setValid();
        h.r = { x + y, x - y, x * y, -x, x |+| y, x |-| y, x & y, x | y, x ^ y, ~x,
                (bit<8>)(BIG / 17 % 100), 0 };
        bit<72> wide = 0x80_0000_0000_0000_0001;
        wide = wide + (bit<72>)x;
        h.r.wide = wide[71:64] + wide[7:0];
    }
}
#include "../rest.p4h"
