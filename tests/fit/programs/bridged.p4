// Fourteen fields go from ingress to egress.
#define EGRESS
#define MORE_TYPES header bridge_t { bit<16> f0; bit<16> f1; bit<16> f2; bit<16> f3; bit<16> f4; bit<16> f5; bit<16> f6; bit<16> f7; bit<16> f8; bit<16> f9; bit<16> f10; bit<16> f11; bit<16> f12; bit<16> f13; }
#define MORE_FIRST bridge_t bridge;
#define MORE_STATES state bridge { pkt.extract(hdr.bridge); transition ethernet; }
#define EGRESS_FIRST_STATE bridge
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<16> v) { hdr.bridge.f0 = v; }
    table t0 { key = { hdr.ip.src : exact; } actions = { set0; } default_action = set0(0); size = 1024; }
    action set1(bit<16> v) { hdr.bridge.f1 = v; }
    table t1 { key = { hdr.ip.dst : exact; } actions = { set1; } default_action = set1(0); size = 1024; }
    action set2(bit<16> v) { hdr.bridge.f2 = v; }
    table t2 { key = { hdr.ip.src : exact; } actions = { set2; } default_action = set2(0); size = 1024; }
    action set3(bit<16> v) { hdr.bridge.f3 = v; }
    table t3 { key = { hdr.ip.dst : exact; } actions = { set3; } default_action = set3(0); size = 1024; }
    action set4(bit<16> v) { hdr.bridge.f4 = v; }
    table t4 { key = { hdr.ip.src : exact; } actions = { set4; } default_action = set4(0); size = 1024; }
    action set5(bit<16> v) { hdr.bridge.f5 = v; }
    table t5 { key = { hdr.ip.dst : exact; } actions = { set5; } default_action = set5(0); size = 1024; }
    action set6(bit<16> v) { hdr.bridge.f6 = v; }
    table t6 { key = { hdr.ip.src : exact; } actions = { set6; } default_action = set6(0); size = 1024; }
    action set7(bit<16> v) { hdr.bridge.f7 = v; }
    table t7 { key = { hdr.ip.dst : exact; } actions = { set7; } default_action = set7(0); size = 1024; }
    action set8(bit<16> v) { hdr.bridge.f8 = v; }
    table t8 { key = { hdr.ip.src : exact; } actions = { set8; } default_action = set8(0); size = 1024; }
    action set9(bit<16> v) { hdr.bridge.f9 = v; }
    table t9 { key = { hdr.ip.dst : exact; } actions = { set9; } default_action = set9(0); size = 1024; }
    action set10(bit<16> v) { hdr.bridge.f10 = v; }
    table t10 { key = { hdr.ip.src : exact; } actions = { set10; } default_action = set10(0); size = 1024; }
    action set11(bit<16> v) { hdr.bridge.f11 = v; }
    table t11 { key = { hdr.ip.dst : exact; } actions = { set11; } default_action = set11(0); size = 1024; }
    action set12(bit<16> v) { hdr.bridge.f12 = v; }
    table t12 { key = { hdr.ip.src : exact; } actions = { set12; } default_action = set12(0); size = 1024; }
    action set13(bit<16> v) { hdr.bridge.f13 = v; }
    table t13 { key = { hdr.ip.dst : exact; } actions = { set13; } default_action = set13(0); size = 1024; }

    apply { hdr.bridge.setValid(); t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); t9.apply(); t10.apply(); t11.apply(); t12.apply(); t13.apply(); send(1); }
}
control Egress(EGRESS_ARGS) {
    action use0(bit<16> v) { hdr.ip.id = v; }
    table t0 { key = { hdr.bridge.f0 : exact; } actions = { use0; NoAction; } const default_action = NoAction(); size = 1024; }
    action use1(bit<16> v) { hdr.ip.length = v; }
    table t1 { key = { hdr.bridge.f1 : exact; } actions = { use1; NoAction; } const default_action = NoAction(); size = 1024; }
    action use2(bit<16> v) { hdr.ip.id = v; }
    table t2 { key = { hdr.bridge.f2 : exact; } actions = { use2; NoAction; } const default_action = NoAction(); size = 1024; }
    action use3(bit<16> v) { hdr.ip.length = v; }
    table t3 { key = { hdr.bridge.f3 : exact; } actions = { use3; NoAction; } const default_action = NoAction(); size = 1024; }
    action use4(bit<16> v) { hdr.ip.id = v; }
    table t4 { key = { hdr.bridge.f4 : exact; } actions = { use4; NoAction; } const default_action = NoAction(); size = 1024; }
    action use5(bit<16> v) { hdr.ip.length = v; }
    table t5 { key = { hdr.bridge.f5 : exact; } actions = { use5; NoAction; } const default_action = NoAction(); size = 1024; }
    action use6(bit<16> v) { hdr.ip.id = v; }
    table t6 { key = { hdr.bridge.f6 : exact; } actions = { use6; NoAction; } const default_action = NoAction(); size = 1024; }
    action use7(bit<16> v) { hdr.ip.length = v; }
    table t7 { key = { hdr.bridge.f7 : exact; } actions = { use7; NoAction; } const default_action = NoAction(); size = 1024; }
    action use8(bit<16> v) { hdr.ip.id = v; }
    table t8 { key = { hdr.bridge.f8 : exact; } actions = { use8; NoAction; } const default_action = NoAction(); size = 1024; }
    action use9(bit<16> v) { hdr.ip.length = v; }
    table t9 { key = { hdr.bridge.f9 : exact; } actions = { use9; NoAction; } const default_action = NoAction(); size = 1024; }
    action use10(bit<16> v) { hdr.ip.id = v; }
    table t10 { key = { hdr.bridge.f10 : exact; } actions = { use10; NoAction; } const default_action = NoAction(); size = 1024; }
    action use11(bit<16> v) { hdr.ip.length = v; }
    table t11 { key = { hdr.bridge.f11 : exact; } actions = { use11; NoAction; } const default_action = NoAction(); size = 1024; }
    action use12(bit<16> v) { hdr.ip.id = v; }
    table t12 { key = { hdr.bridge.f12 : exact; } actions = { use12; NoAction; } const default_action = NoAction(); size = 1024; }
    action use13(bit<16> v) { hdr.ip.length = v; }
    table t13 { key = { hdr.bridge.f13 : exact; } actions = { use13; NoAction; } const default_action = NoAction(); size = 1024; }

    apply { t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); t9.apply(); t10.apply(); t11.apply(); t12.apply(); t13.apply(); hdr.bridge.setInvalid(); }
}
#include "stack_end.p4"
