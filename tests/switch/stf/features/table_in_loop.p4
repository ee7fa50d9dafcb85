// A table is applied in a loop, which its result may end.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action next(bit<8> x) { h.d.x = x; h.d.y = h.d.y + 1; }
    action stop() { h.d.z = 0xff; }
    table step { key = { h.d.x : exact; } actions = { next; stop; NoAction; }
        const entries = { 1: next(2); 2: next(3); 3: next(4); 4: next(1); 9: stop(); } }
    apply {
        s.egress_spec = 1;
        for (bit<8> i = 0; i < h.d.op; i = i + 1) {
            if (i == 2) { continue; }
            if (step.apply().miss) { h.d.w = h.d.w + 1; break; }
            if (h.d.z == 0xff) { break; }
        }
    }
}
#include "../rest.p4h"
