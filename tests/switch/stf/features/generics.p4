// Generic structs, functions and controls' extern arguments; named and omitted arguments.
#include "../first.p4h"
struct headers_t { data_t d; }
struct box<T> { T value; bit<8> tag; }
header hbox<T> { T v; }
T pick<T>(in bool first, in T a, in T b) { return first ? a : b; }
bit<8> less(in bit<8> a, in bit<8> b = 3) { return a - b; }
control Store(in bit<8> v, @optional in bit<8> w, out bit<8> got)(bit<32> size) {
    register<bit<8>>(size) cells;
    apply { cells.read(got, 0); cells.write(0, v); }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Store(size = 4) store;
    apply {
        s.egress_spec = 1;
        box<bit<16>> b = { value = h.d.w, tag = 7 };
        h.d.y = pick(h.d.x == 0, b.tag, 8w1);
        h.d.z = less(b = h.d.x, a = 9);
        if (h.d.op == 1) { h.d.z = less(9); }
        h.d.w = pick<bit<16>>(false, 1, b.value + 1);
        if (h.d.op == 2) { store.apply(v = h.d.x, got = h.d.y); }
    }
}
#include "../rest.p4h"
