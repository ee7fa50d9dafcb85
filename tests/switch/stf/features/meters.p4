// Meters nobody has set up are green; so is a direct one.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) rate;
    direct_meter<bit<8>>(MeterType.bytes) each;
    bit<8> colour;
    action pass(bit<9> port) { s.egress_spec = port; each.read(colour); }
    table t { key = { h.d.x : exact; } actions = { pass; NoAction; } meters = each; }
    apply {
        s.egress_spec = 1;
        colour = 7;
        bit<2> c = 3;
        rate.execute_meter((bit<32>)h.d.y, c);
        t.apply();
        h.d.z = (bit<8>)c;
        h.d.w = (bit<16>)colour;
    }
}
#include "../rest.p4h"
