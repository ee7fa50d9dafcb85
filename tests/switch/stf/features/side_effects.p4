// Calls in keys, conditions and operands; an action that exits copies its argument out.
#include "../first.p4h"
struct headers_t { data_t d; }
bit<8> inc(inout bit<8> v) { v = v + 1; return v; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action ex(inout bit<8> v, bit<8> n) { v = n; exit; }
    action set(bit<8> n) { h.d.y = n; }
    table t { key = { inc(h.d.x) : exact @name("k"); h.d.x : exact @name("l"); } actions = { set; ex(h.d.z); NoAction; } }
    bit<8> res;
    apply { s.egress_spec = 1;
       if (t.apply().hit && inc(h.d.op) == 1) { h.d.w[7:0] = inc(h.d.y); }
       h.d.w[15:8] = inc(h.d.y) - inc(h.d.y);
    }
}
#include "../rest.p4h"
