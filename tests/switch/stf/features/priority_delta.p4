// What entries added later meet: priorities of the source's entries in steps of 100.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action z(bit<8> v) { h.d.z = v; }
    table t {
        key = { h.d.x : ternary; }
        actions = { z; }
        priority_delta = 100;
        entries = {
            0x10 &&& 0xf0 : z(1);     // 201
            0x12 : z(2);              // 101
            0x02 &&& 0x0f : z(3);     // 1
        }
    }
    apply { s.egress_spec = 1; t.apply(); }
}
#include "../rest.p4h"
