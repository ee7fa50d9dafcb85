// @name on tables, actions and keys; top-level actions; names shortened in the test.
#include "../first.p4h"
struct headers_t { data_t d; }
action global(inout bit<8> v, bit<8> w) { v = w; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    @name("assign") action set(bit<8> v) { h.d.z = v; }
    @name(".whole.other") action other() { h.d.z = 0x99; }
    @name("my.table") table t {
        key = { h.d.x : exact @name("the key"); h.d.y : exact; }
        actions = { set; other; global(h.d.z); }
    }
    @name(".root") table r { key = { h.d.x : exact; } actions = { set; } }
    apply { s.egress_spec = 1; t.apply(); r.apply(); }
}
#include "../rest.p4h"
