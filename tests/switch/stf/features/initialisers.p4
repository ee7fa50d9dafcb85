// Struct, header, tuple and list values; field names; rest by default; equality.
#define HAS_META
#include "../first.p4h"
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct in_t { bit<8> p; bit<16> q; }
struct nest_t { in_t one; in_t two; bool flag; }
struct meta_t { nest_t n; tuple<bit<8>, bit<16>> t; }
struct headers_t { data_t d; h_t one; h_t two; }
const in_t CONST = { 5, 6 };
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0: { h.one = { 1, 2, 3 }; h.two = { c = 9, a = 7, b = 8 }; }
            1: { h.one = { a = 1, ... }; h.two = h.one; h.two.b = 5; }
            2: { m.n = { {1, 2}, CONST, true }; in_t x = m.n.two; h.d.w = x.q + m.n.one.q;
                 h.d.y = m.n.flag ? 8w1 : 0; }
            3: { m.t = { 3, 4 }; h.d.y = m.t[0]; h.d.w = m.t[1]; }
            4: { h.one = { 1, 2, 3 }; h.two = (h_t){ 1, 2, 3 };
                 if (h.one == h.two) { h.d.y = 1; }
                 h.two.c = 4;
                 if (h.one != h.two) { h.d.z = 1; }
                 h.one.setInvalid();
                 if (h.one == h.two) { h.d.w = 1; }
                 h.two.setInvalid();
                 if (h.one == h.two) { h.d.w = h.d.w + 2; } }
            5: { h.one = { 1, 2, 3 }; h.one = (h_t){#}; if (!h.one.isValid()) { h.d.y = 1; } }
            6: { in_t a = { 1, 2 }; in_t b = { p = 1, q = 2 }; if (a == b) { h.d.y = 1; }
                 b.q = 3; if (a == b) { h.d.z = 1; } }
            7: { if ({h.d.x, h.d.y} == {8w1, 8w2}) { h.d.z = 1; } }
        }
    }
}
#include "../rest.p4h"
