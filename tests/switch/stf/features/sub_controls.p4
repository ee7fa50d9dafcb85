// Controls in controls: constructor arguments, instances with tables of their own, directions.
#include "../first.p4h"
struct headers_t { data_t d; }
control Add(in bit<8> a, inout bit<8> b, out bit<8> c)(bit<8> step, bool twice) {
    bit<8> local;
    action act(bit<8> v) { local = v; }
    table t { key = { a : exact; } actions = { act; NoAction; } }
    apply {
        local = 0;
        t.apply();
        b = b + step + local;
        if (twice) { b = b + step; }
        c = a;
    }
}
control Outer(inout data_t d) {
    Add(1, false) one;
    Add(0x10, true) two;
    apply { one.apply(d.x, d.y, d.z); two.apply(d.x, d.y, d.op); one.apply(d.x + 1, d.y, d.x); }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Outer() o;
    apply { s.egress_spec = 1; o.apply(h.d); }
}
#include "../rest.p4h"
