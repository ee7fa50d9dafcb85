// Functions: value and directions of parameters, early return, calls in expressions in order.
#include "../first.p4h"
struct headers_t { data_t d; }
bit<8> least(in bit<8> a, in bit<8> b) { if (a < b) { return a; } return b; }
bit<8> bump(inout bit<8> v) { v = v + 1; return v; }
void swap(inout bit<8> a, inout bit<8> b) { bit<8> t = a; a = b; b = t; }
void clear(out bit<16> w) { w = 0; }
T same<T>(in T v) { return v; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0: { h.d.z = least(h.d.x, h.d.y); }
            1: { swap(h.d.x, h.d.y); clear(h.d.w); }
            2: { h.d.w = bump(h.d.x) ++ bump(h.d.x); }
            3: { h.d.z = bump(h.d.x) + h.d.x; }          // the left operand first
            4: { h.d.z = h.d.x + bump(h.d.x); }
            5: { if (h.d.x == 0 && bump(h.d.y) == 1) { h.d.z = 1; } }   // short circuit
            6: { h.d.z = least(bump(h.d.x), same(h.d.y)); }
        }
    }
}
#include "../rest.p4h"
