// Eight tables, each of which matches on what the one before it set.
#define METADATA bit<16> v0; bit<16> v1; bit<16> v2; bit<16> v3; bit<16> v4; bit<16> v5; bit<16> v6; bit<16> v7;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<16> v) { md.v0 = v; }
    table t0 { key = { hdr.ip.dst : exact; } actions = { set0; NoAction; } const default_action = NoAction(); size = 1024; }
    action set1(bit<16> v) { md.v1 = v; }
    table t1 { key = { md.v0 : exact; } actions = { set1; NoAction; } const default_action = NoAction(); size = 2048; }
    action set2(bit<16> v) { md.v2 = v; }
    table t2 { key = { md.v1 : exact; } actions = { set2; NoAction; } const default_action = NoAction(); size = 4096; }
    action set3(bit<16> v) { md.v3 = v; }
    table t3 { key = { md.v2 : exact; } actions = { set3; NoAction; } const default_action = NoAction(); size = 8192; }
    action set4(bit<16> v) { md.v4 = v; }
    table t4 { key = { md.v3 : exact; } actions = { set4; NoAction; } const default_action = NoAction(); size = 1024; }
    action set5(bit<16> v) { md.v5 = v; }
    table t5 { key = { md.v4 : exact; } actions = { set5; NoAction; } const default_action = NoAction(); size = 2048; }
    action set6(bit<16> v) { md.v6 = v; }
    table t6 { key = { md.v5 : exact; } actions = { set6; NoAction; } const default_action = NoAction(); size = 4096; }
    action set7(bit<16> v) { md.v7 = v; }
    table t7 { key = { md.v6 : exact; } actions = { set7; NoAction; } const default_action = NoAction(); size = 8192; }

    table last { key = { md.v7 : exact; } actions = { send; drop; } const default_action = drop(); size = 512; }
    apply { t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); last.apply(); }
}
#include "stack_end.p4"
