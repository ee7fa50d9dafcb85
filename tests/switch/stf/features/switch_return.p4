// return inside switch, in a control applied several times.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control Sub(inout bit<8> v) { apply { switch (v) { 1: { v = 10; return; } 2: { v = 20; } default: { if (v > 50) { return; } v = 30; } } v = v + 1; } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Sub() a;
    apply { s.egress_spec = 1; a.apply(h.d.x); a.apply(h.d.y); a.apply(h.d.z); }
}
#include "../rest.p4h"
