// Chains of six tables in ingress and in egress.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4; bit<16> m5;
#define EGRESS
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
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        t0.apply();
        t1.apply();
        t2.apply();
        t3.apply();
        t4.apply();
        t5.apply();
        send(1);
    }
}
control Egress(EGRESS_ARGS) {
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
    apply {
        t0.apply();
        t1.apply();
        t2.apply();
        t3.apply();
        t4.apply();
        t5.apply();
        hdr.ip.id = md.m5;
    }
}
#include "frame_end.p4"
