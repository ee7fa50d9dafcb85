// 22 tables, each matching on what the one before has set.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4; bit<16> m5; bit<16> m6; bit<16> m7; bit<16> m8; bit<16> m9; bit<16> m10; bit<16> m11; bit<16> m12; bit<16> m13; bit<16> m14; bit<16> m15; bit<16> m16; bit<16> m17; bit<16> m18; bit<16> m19; bit<16> m20; bit<16> m21;
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
    action set_13(bit<16> v) { md.m13 = v; }
    table t13 { key = { md.m12 : exact; } actions = { set_13; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_14(bit<16> v) { md.m14 = v; }
    table t14 { key = { md.m13 : exact; } actions = { set_14; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_15(bit<16> v) { md.m15 = v; }
    table t15 { key = { md.m14 : exact; } actions = { set_15; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_16(bit<16> v) { md.m16 = v; }
    table t16 { key = { md.m15 : exact; } actions = { set_16; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_17(bit<16> v) { md.m17 = v; }
    table t17 { key = { md.m16 : exact; } actions = { set_17; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_18(bit<16> v) { md.m18 = v; }
    table t18 { key = { md.m17 : exact; } actions = { set_18; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_19(bit<16> v) { md.m19 = v; }
    table t19 { key = { md.m18 : exact; } actions = { set_19; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_20(bit<16> v) { md.m20 = v; }
    table t20 { key = { md.m19 : exact; } actions = { set_20; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_21(bit<16> v) { md.m21 = v; }
    table t21 { key = { md.m20 : exact; } actions = { set_21; NoAction; } const default_action = NoAction(); size = 1024; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table forward { key = { md.m21 : exact; } actions = { send; drop; } const default_action = drop(); size = 512; }
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
        t13.apply();
        t14.apply();
        t15.apply();
        t16.apply();
        t17.apply();
        t18.apply();
        t19.apply();
        t20.apply();
        t21.apply();
        forward.apply();
    }
}
#include "frame_end.p4"
