// What a lookup came to: action_run, hit, miss, in conditions and switch.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action a() { h.d.y = 1; }
    action b(bit<8> v) { h.d.y = v; }
    action c() { }
    table t { key = { h.d.x : exact; } actions = { a; b; c; NoAction; } default_action = NoAction; }
    table u { key = { h.d.y : exact; } actions = { a; c; } default_action = c; }
    apply {
        s.egress_spec = 1;
        switch (t.apply().action_run) {
            a: { h.d.z = 0x0a; }
            b:
            c: { h.d.z = 0xbc; }
            default: { h.d.z = 0xdd; }
        }
        if (u.apply().hit) { h.d.w = 1; } else { h.d.w = 2; }
        if (u.apply().miss && h.d.x == 9) { h.d.w = h.d.w + 0x100; }
        bool found = !u.apply().hit;
        if (found) { h.d.w = h.d.w + 0x1000; }
    }
}
#include "../rest.p4h"
