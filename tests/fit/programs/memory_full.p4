// Ten exact tables of 40,000 entries, and eight registers.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4; bit<16> m5; bit<16> m6; bit<16> m7; bit<16> m8; bit<16> m9;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action set_0(bit<16> v) { md.m0 = v; }
    table t0 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_0; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_1(bit<16> v) { md.m1 = v; }
    table t1 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_1; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_2(bit<16> v) { md.m2 = v; }
    table t2 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_2; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_3(bit<16> v) { md.m3 = v; }
    table t3 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_3; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_4(bit<16> v) { md.m4 = v; }
    table t4 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_4; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_5(bit<16> v) { md.m5 = v; }
    table t5 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_5; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_6(bit<16> v) { md.m6 = v; }
    table t6 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_6; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_7(bit<16> v) { md.m7 = v; }
    table t7 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_7; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_8(bit<16> v) { md.m8 = v; }
    table t8 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_8; NoAction; } const default_action = NoAction(); size = 40000; }
    action set_9(bit<16> v) { md.m9 = v; }
    table t9 { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; } actions = { set_9; NoAction; } const default_action = NoAction(); size = 40000; }
    Register<bit<32>, bit<16>>(4096) r0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w0; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w1; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w2; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w3; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r4) add4 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w4; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r5) add5 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w5; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r6;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r6) add6 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w6; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r7;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r7) add7 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w7; out_ = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        t0.apply();
        t1.apply();
        t2.apply();
        t3.apply();
        t4.apply();
        t5.apply();
        t6.apply();
        t7.apply();
        t8.apply();
        t9.apply();
        hdr.words.w0 = add0.execute(hdr.ports.src);
        hdr.words.w1 = add1.execute(hdr.ports.src);
        hdr.words.w2 = add2.execute(hdr.ports.src);
        hdr.words.w3 = add3.execute(hdr.ports.src);
        hdr.words.w4 = add4.execute(hdr.ports.src);
        hdr.words.w5 = add5.execute(hdr.ports.src);
        hdr.words.w6 = add6.execute(hdr.ports.src);
        hdr.words.w7 = add7.execute(hdr.ports.src);
        send(1);
    }
}
#include "frame_end.p4"
