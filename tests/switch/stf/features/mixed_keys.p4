// Ternary, lpm and exact fields in one key, with entries in the source.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.z = v; }
    table t { key = { h.d.x : ternary; h.d.w : lpm; h.d.y: exact; } actions = { set; NoAction; }
      const entries = {
        (1, 0x1200 &&& 0xff00, 3) : set(1);
        (_, 0x1230 &&& 0xfff0, 3) : set(2);
        (_, _, 4) : set(3);
      } }
    apply { s.egress_spec = 1; t.apply(); }
}
#include "../rest.p4h"
