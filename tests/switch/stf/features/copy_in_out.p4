// Arguments are copied in from left to right and out in the same order.
#include "../first.p4h"
struct headers_t { data_t d; }
struct pair_t { bit<8> a; bit<8> b; }
void both(inout bit<8> a, inout bit<8> b) { a = a + 1; b = b + 2; }
void over(in bit<8> a, inout bit<8> b) { b = b + 1; b = b + a; }
void make(out pair_t p) { p.a = 7; }
bit<8> next(inout bit<8> n) { n = n + 1; return n; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action act(inout bit<8> v, in bit<8> w) { v = v + w; h.d.x = h.d.x + 1; }
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0: { both(h.d.x, h.d.x); }                 // the second copy out is the last
            1: { over(h.d.x, h.d.x); }                 // a has the value from before
            2: { pair_t p = {1, 2}; make(p); h.d.x = p.a; h.d.y = p.b; }   // out: b unset, zero
            3: { act(h.d.x, h.d.x); }                  // the action's own write is overwritten
            4: { both(h.d.w[7:0], h.d.w[15:8]); }
            5: { over(next(h.d.x), h.d.x); }           // h.d.x copied in after next
            6: { h.d.w = next(h.d.x) ++ (next(h.d.x) + h.d.x); }
            7: { bit<8> i = 0; h.d.z = h.d.x[7:7] == 1 ? next(h.d.y) : next(i); }
        }
    }
}
#include "../rest.p4h"
