// A chain of fifteen tables.
#define METADATA bit<16> v;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<16> v) { md.v = v; }
    table t0 { key = { hdr.ip.dst : exact; hdr.ip.protocol : exact; } actions = { set0; NoAction; } const default_action = NoAction(); size = 2048; }
    action set1(bit<16> v) { md.v = v; }
    table t1 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set1; NoAction; } const default_action = NoAction(); size = 2048; }
    action set2(bit<16> v) { md.v = v; }
    table t2 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set2; NoAction; } const default_action = NoAction(); size = 2048; }
    action set3(bit<16> v) { md.v = v; }
    table t3 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set3; NoAction; } const default_action = NoAction(); size = 2048; }
    action set4(bit<16> v) { md.v = v; }
    table t4 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set4; NoAction; } const default_action = NoAction(); size = 2048; }
    action set5(bit<16> v) { md.v = v; }
    table t5 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set5; NoAction; } const default_action = NoAction(); size = 2048; }
    action set6(bit<16> v) { md.v = v; }
    table t6 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set6; NoAction; } const default_action = NoAction(); size = 2048; }
    action set7(bit<16> v) { md.v = v; }
    table t7 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set7; NoAction; } const default_action = NoAction(); size = 2048; }
    action set8(bit<16> v) { md.v = v; }
    table t8 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set8; NoAction; } const default_action = NoAction(); size = 2048; }
    action set9(bit<16> v) { md.v = v; }
    table t9 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set9; NoAction; } const default_action = NoAction(); size = 2048; }
    action set10(bit<16> v) { md.v = v; }
    table t10 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set10; NoAction; } const default_action = NoAction(); size = 2048; }
    action set11(bit<16> v) { md.v = v; }
    table t11 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set11; NoAction; } const default_action = NoAction(); size = 2048; }
    action set12(bit<16> v) { md.v = v; }
    table t12 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set12; NoAction; } const default_action = NoAction(); size = 2048; }
    action set13(bit<16> v) { md.v = v; }
    table t13 { key = { md.v : exact; hdr.ip.protocol : exact; } actions = { set13; NoAction; } const default_action = NoAction(); size = 2048; }

    table last { key = { md.v : exact; } actions = { send; drop; } const default_action = drop(); size = 512; }
    apply { t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); t9.apply(); t10.apply(); t11.apply(); t12.apply(); t13.apply(); last.apply(); }
}
#include "stack_end.p4"
