// exit ends the pipeline's control, return only the block it is in; copies out happen.
#include "../first.p4h"
struct headers_t { data_t d; }
control Inner(inout bit<8> v, in bit<8> how) {
    apply {
        v = v + 1;
        if (how == 1) { return; }
        if (how == 2) { exit; }
        v = v + 0x10;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Inner() inner;
    action leave() { h.d.z = 0xee; exit; }
    action stay() { h.d.z = 0xaa; return; }
    table t { key = { h.d.x : exact; } actions = { leave; stay; NoAction; }
        const entries = { 5 : leave; 6 : stay; } }
    apply {
        s.egress_spec = 1;
        inner.apply(h.d.y, h.d.op);
        t.apply();
        if (h.d.op == 3) { return; }
        h.d.w = 0x1111;
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.op = 0xff; if (h.d.x == 7) { exit; } h.d.x = 0; }
}
#include "../rest.p4h"
