// A stateful firewall: three bit arrays remember flows from inside.
#define METADATA bit<32> x; bit<32> y; bit<1> side; bit<1> f0; bit<1> f1; bit<1> f2;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Hash<bit<18>>(HashAlgorithm_t.CRC32) h0;
    Register<bit<1>, bit<18>>(262144) bits0;
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits0) set0 = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits0) get0 = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    Hash<bit<18>>(HashAlgorithm_t.CRC64) h1;
    Register<bit<1>, bit<18>>(262144) bits1;
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits1) set1 = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits1) get1 = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    Hash<bit<18>>(HashAlgorithm_t.CRC16) h2;
    Register<bit<1>, bit<18>>(262144) bits2;
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits2) set2 = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(bits2) get2 = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };

    action inside() { md.x = hdr.ip.src; md.y = hdr.ip.dst; md.side = 1; }
    action outside() { md.x = hdr.ip.dst; md.y = hdr.ip.src; md.side = 0; }
    table sides { key = { ig.ingress_port : exact; } actions = { inside; outside; } default_action = outside(); size = 288; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { send; drop; } const default_action = drop(); size = 1024; }
    apply {
        sides.apply();
        if (hdr.tcp.isValid()) {
            if (md.side == 1) {
                set0.execute(h0.get({ md.x, md.y })); set1.execute(h1.get({ md.x, md.y })); set2.execute(h2.get({ md.x, md.y }));
                md.f0 = 1; md.f1 = 1; md.f2 = 1;
            } else {
                md.f0 = get0.execute(h0.get({ md.x, md.y })); md.f1 = get1.execute(h1.get({ md.x, md.y })); md.f2 = get2.execute(h2.get({ md.x, md.y }));
            }
            if (md.f0 == 1 && md.f1 == 1 && md.f2 == 1) { routes.apply(); } else { drop(); }
        }
    }
}
#include "stack_end.p4"
