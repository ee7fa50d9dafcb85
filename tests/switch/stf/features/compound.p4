// Compound assignment, masks, ternary expressions, boolean logic, constants.
#include "../first.p4h"
struct headers_t { data_t d; }
const bool DEBUG = false;
const bit<8> FOUR = 2 + 2;
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        bit<8> a = h.d.x;
        switch (h.d.op) {
            0: { a += 3; a *= 2; a -= 1; }
            1: { a |= 0xf0; a &= 0x3f; a ^= 1; }
            2: { a <<= FOUR; }
            3: { a >>= 1; }
            4: { a |+|= 0xf0; }
            5: { a |-|= 0x10; }
            6: { a = a > 3 ? (a < 6 ? 8w1 : 2) : 3; }
            7: { if (!(a == 1 || a == 2) && (a != 9 || DEBUG)) { a = 0xaa; } }
            8: { a[7:4] += 1; }
        }
        h.d.x = a;
    }
}
#include "../rest.p4h"
