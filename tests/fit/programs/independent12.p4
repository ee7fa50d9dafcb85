// Twelve tables that do not depend on each other.
#define METADATA bit<8> m0; bit<8> m1; bit<8> m2; bit<8> m3; bit<8> m4; bit<8> m5; bit<8> m6; bit<8> m7; bit<8> m8; bit<8> m9; bit<8> m10; bit<8> m11;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action set_0(bit<8> v) { md.m0 = v; }
    table t0 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_0; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_1(bit<8> v) { md.m1 = v; }
    table t1 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_1; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_2(bit<8> v) { md.m2 = v; }
    table t2 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_2; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_3(bit<8> v) { md.m3 = v; }
    table t3 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_3; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_4(bit<8> v) { md.m4 = v; }
    table t4 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_4; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_5(bit<8> v) { md.m5 = v; }
    table t5 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_5; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_6(bit<8> v) { md.m6 = v; }
    table t6 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_6; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_7(bit<8> v) { md.m7 = v; }
    table t7 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_7; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_8(bit<8> v) { md.m8 = v; }
    table t8 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_8; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_9(bit<8> v) { md.m9 = v; }
    table t9 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_9; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_10(bit<8> v) { md.m10 = v; }
    table t10 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_10; NoAction; } const default_action = NoAction(); size = 2048; }
    action set_11(bit<8> v) { md.m11 = v; }
    table t11 { key = { hdr.ip.src : exact; hdr.ports.src : exact; } actions = { set_11; NoAction; } const default_action = NoAction(); size = 2048; }
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
        t10.apply();
        t11.apply();
        send(1);
    }
}
#include "frame_end.p4"
