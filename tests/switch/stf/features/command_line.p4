// What STF has no commands for is set with simple_switch's: profiles, value sets, meters.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) tags;
    state start {
        p.extract(h.d);
        transition select(h.d.op, h.d.x) { (tags, 1): tagged; default: accept; }
    }
    state tagged { h.d.w = 0x7777; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) police;
    action set(bit<8> v) { h.d.y = v; }
    table chosen {
        key = { h.d.op: exact; }
        actions = { set; NoAction; }
        implementation = action_profile(4);
    }
    apply {
        s.egress_spec = 1;
        chosen.apply();
        police.execute_meter((bit<32>) h.d.op, h.d.z);
    }
}
#include "../rest.p4h"
