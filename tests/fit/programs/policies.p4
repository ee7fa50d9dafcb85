// Three ternary tables, one after the other, each with a class of the one before.
#define METADATA bit<8> c0; bit<8> c1; bit<8> c2;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action class0(bit<8> c) { md.c0 = c; }
    table policy0 { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; } actions = { class0; NoAction; } const default_action = NoAction(); size = 3000; }
    action class1(bit<8> c) { md.c1 = c; }
    table policy1 { key = { md.c0 : ternary; hdr.ports.dst : ternary; hdr.words.w1 : ternary; } actions = { class1; NoAction; } const default_action = NoAction(); size = 6000; }
    action class2(bit<8> c) { md.c2 = c; }
    table policy2 { key = { md.c1 : ternary; hdr.ports.dst : ternary; hdr.words.w2 : ternary; } actions = { class2; NoAction; } const default_action = NoAction(); size = 9000; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table out_ports { key = { md.c2 : exact; } actions = { send; drop; } const default_action = drop(); size = 256; }
    apply {
        policy0.apply();
        policy1.apply();
        policy2.apply();
        out_ports.apply();
    }
}
#include "frame_end.p4"
