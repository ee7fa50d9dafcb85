// Two chains of five tables, of which a packet takes one.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action set_a0(bit<16> v) { md.m0 = v; }
    table a0 { key = { hdr.ip.dst : exact; } actions = { set_a0; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_a1(bit<16> v) { md.m1 = v; }
    table a1 { key = { md.m0 : exact; } actions = { set_a1; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_a2(bit<16> v) { md.m2 = v; }
    table a2 { key = { md.m1 : exact; } actions = { set_a2; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_a3(bit<16> v) { md.m3 = v; }
    table a3 { key = { md.m2 : exact; } actions = { set_a3; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_a4(bit<16> v) { md.m4 = v; }
    table a4 { key = { md.m3 : exact; } actions = { set_a4; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_b0(bit<16> v) { md.m0 = v; }
    table b0 { key = { hdr.ip.dst : exact; } actions = { set_b0; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_b1(bit<16> v) { md.m1 = v; }
    table b1 { key = { md.m0 : exact; } actions = { set_b1; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_b2(bit<16> v) { md.m2 = v; }
    table b2 { key = { md.m1 : exact; } actions = { set_b2; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_b3(bit<16> v) { md.m3 = v; }
    table b3 { key = { md.m2 : exact; } actions = { set_b3; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_b4(bit<16> v) { md.m4 = v; }
    table b4 { key = { md.m3 : exact; } actions = { set_b4; NoAction; } const default_action = NoAction(); size = 1024; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        if (hdr.ports.isValid()) {
            a0.apply();
            a1.apply();
            a2.apply();
            a3.apply();
            a4.apply();
        } else {
            b0.apply();
            b1.apply();
            b2.apply();
            b3.apply();
            b4.apply();
        }
        send(1);
    }
}
#include "frame_end.p4"
