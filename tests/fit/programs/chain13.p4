// 13 tables, each matching on what the one before has set.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4; bit<16> m5; bit<16> m6; bit<16> m7; bit<16> m8; bit<16> m9; bit<16> m10; bit<16> m11; bit<16> m12;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action set_0(bit<16> v) { md.m0 = v; }
    table t0 { key = { hdr.ip.dst : exact; } actions = { set_0; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_1(bit<16> v) { md.m1 = v; }
    table t1 { key = { md.m0 : exact; } actions = { set_1; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_2(bit<16> v) { md.m2 = v; }
    table t2 { key = { md.m1 : exact; } actions = { set_2; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_3(bit<16> v) { md.m3 = v; }
    table t3 { key = { md.m2 : exact; } actions = { set_3; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_4(bit<16> v) { md.m4 = v; }
    table t4 { key = { md.m3 : exact; } actions = { set_4; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_5(bit<16> v) { md.m5 = v; }
    table t5 { key = { md.m4 : exact; } actions = { set_5; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_6(bit<16> v) { md.m6 = v; }
    table t6 { key = { md.m5 : exact; } actions = { set_6; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_7(bit<16> v) { md.m7 = v; }
    table t7 { key = { md.m6 : exact; } actions = { set_7; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_8(bit<16> v) { md.m8 = v; }
    table t8 { key = { md.m7 : exact; } actions = { set_8; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_9(bit<16> v) { md.m9 = v; }
    table t9 { key = { md.m8 : exact; } actions = { set_9; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_10(bit<16> v) { md.m10 = v; }
    table t10 { key = { md.m9 : exact; } actions = { set_10; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_11(bit<16> v) { md.m11 = v; }
    table t11 { key = { md.m10 : exact; } actions = { set_11; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_12(bit<16> v) { md.m12 = v; }
    table t12 { key = { md.m11 : exact; } actions = { set_12; NoAction; } const default_action = NoAction(); size = 1024; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table forward { key = { md.m12 : exact; } actions = { send; drop; } const default_action = drop(); size = 512; }
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
        t10.apply();
        t11.apply();
        t12.apply();
        forward.apply();
    }
}
#include "frame_end.p4"
