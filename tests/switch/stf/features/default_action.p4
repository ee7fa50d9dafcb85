// Default actions: with arguments, replaced by the control plane, const, and none at all.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.z = v; }
    action both(bit<8> v, bit<16> w) { h.d.z = v; h.d.w = w; }
    action add(in bit<8> more, bit<8> v) { h.d.z = h.d.z + more + v; }
    table given { key = { h.d.x : exact; } actions = { set; both; } default_action = both(7, 0x1234); }
    table replaced { key = { h.d.x : exact; } actions = { set; both; } default_action = set(1); }
    table fixed { key = { h.d.x : exact; } actions = { set; } const default_action = set(v = 9); }
    table silent { key = { h.d.x : exact; } actions = { set; } }
    table keyless { actions = { set; } default_action = set(0x55); }
    table bound { key = { h.d.x : exact; } actions = { add(h.d.y); } default_action = add(h.d.y, 3); }
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0: { given.apply(); }
            1: { replaced.apply(); }
            2: { fixed.apply(); }
            3: { silent.apply(); }
            4: { keyless.apply(); }
            5: { bound.apply(); }
        }
    }
}
#include "../rest.p4h"
