// Buckets of tokens in registers: time since the last packet of a tenant adds tokens, each packet takes its length. An ALU cannot multiply.
#define METADATA bit<32> now; bit<32> passed; bit<32> tokens; bit<16> tenant; bit<32> left; bit<32> rate;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    action tenant(bit<16> t, bit<32> rate) { md.tenant = t; md.rate = rate; }
    table tenants { key = { hdr.ip.src : lpm; } actions = { tenant; NoAction; } const default_action = NoAction(); size = 4096; }
    Register<bit<32>, bit<16>>(65536) last;
    RegisterAction<bit<32>, bit<16>, bit<32>>(last) since = { void apply(inout bit<32> v, out bit<32> r) { r = md.now - v; v = md.now; } };
    Register<bit<32>, bit<16>>(65536) bucket;
    RegisterAction<bit<32>, bit<16>, bit<32>>(bucket) spend = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| md.tokens; r = v; } };
    action discard() { dprsr.drop_ctl = 1; }
    apply {
        md.now = (bit<32>)ig.ingress_mac_tstamp[47:16];
        tenants.apply();
        md.passed = since.execute(md.tenant);
        md.tokens = md.passed * md.rate;
        md.left = spend.execute(md.tenant);
        if (md.left == 0) { discard(); }
        tm.ucast_egress_port = 8;
    }
}
#include "frame_end.p4"
