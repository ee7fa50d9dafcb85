// Against floods of SYN: two rows of counts by target, a filter of sources that have finished a handshake, a verdict by a table of ranges.
#define METADATA bit<16> i0; bit<16> i1; bit<32> c0; bit<32> c1; bit<32> least; bit<20> level; bit<1> good0; bit<1> good1; bit<18> place0; bit<18> place1; bit<2> kind;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h0; Hash<bit<16>>(HashAlgorithm_t.CRC32) h1;
    Hash<bit<18>>(HashAlgorithm_t.CRC32) g0; Hash<bit<18>>(HashAlgorithm_t.CRC64) g1;
    Register<bit<32>, bit<16>>(65536) row0; Register<bit<32>, bit<16>>(65536) row1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(row0) add0 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(row1) add1 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    Register<bit<1>, bit<18>>(262144) seen0; Register<bit<1>, bit<18>>(262144) seen1;
    RegisterAction<bit<1>, bit<18>, bit<1>>(seen0) set0 = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(seen1) set1 = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(seen0) get0 = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    RegisterAction<bit<1>, bit<18>, bit<1>>(seen1) get1 = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    action kind(bit<2> k) { md.kind = k; }
    table kinds { key = { hdr.ip.protocol : exact; hdr.ip.tos : ternary; } actions = { kind; NoAction; } const default_action = NoAction(); size = 16; }
    action hash0() { md.i0 = h0.get({ hdr.ip.dst }); }
    action hash1() { md.i1 = h1.get({ hdr.ip.dst }); }
    action hash2() { md.place0 = g0.get({ hdr.ip.src }); }
    action hash3() { md.place1 = g1.get({ hdr.ip.src }); }
    action count0() { md.c0 = add0.execute(md.i0); }
    action count1() { md.c1 = add1.execute(md.i1); }
    action least() { md.least = min(md.c0, md.c1); }
    action level() { md.level = md.least[19:0]; }
    action note0() { md.good0 = set0.execute(md.place0); }
    action note1() { md.good1 = set1.execute(md.place1); }
    action ask0() { md.good0 = get0.execute(md.place0); }
    action ask1() { md.good1 = get1.execute(md.place1); }
    action drop() { dprsr.drop_ctl = 1; }
    table verdicts { key = { md.level : range; md.good0 : exact; md.good1 : exact; } actions = { drop; NoAction; } const default_action = NoAction(); size = 64; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 8192; }
    apply {
        if (hdr.ip.isValid()) {
            kinds.apply();
            hash0(); hash1(); hash2(); hash3();
            if (md.kind == 1) {
                ask0(); ask1();
                count0(); count1();
                least();
                level();
                verdicts.apply();
            } else if (md.kind == 2) {
                note0(); note1();
            }
            routes.apply();
        }
    }
}
#include "frame_end.p4"
