// Conditions within conditions, and many small tables.
#define METADATA bit<8> v0; bit<8> v1; bit<8> v2; bit<8> v3; bit<8> v4; bit<8> v5; bit<8> v6; bit<8> v7;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<8> v) { md.v0 = v; }
    table t0 { key = { hdr.ip.dscp : exact; } actions = { set0; NoAction; } const default_action = NoAction(); size = 64; }
    action set1(bit<8> v) { md.v1 = v; }
    table t1 { key = { hdr.ip.protocol : exact; } actions = { set1; NoAction; } const default_action = NoAction(); size = 64; }
    action set2(bit<8> v) { md.v2 = v; }
    table t2 { key = { hdr.ip.ttl : exact; } actions = { set2; NoAction; } const default_action = NoAction(); size = 64; }
    action set3(bit<8> v) { md.v3 = v; }
    table t3 { key = { hdr.ip.id : exact; } actions = { set3; NoAction; } const default_action = NoAction(); size = 64; }
    action set4(bit<8> v) { md.v4 = v; }
    table t4 { key = { hdr.ip.dscp : exact; } actions = { set4; NoAction; } const default_action = NoAction(); size = 64; }
    action set5(bit<8> v) { md.v5 = v; }
    table t5 { key = { hdr.ip.protocol : exact; } actions = { set5; NoAction; } const default_action = NoAction(); size = 64; }
    action set6(bit<8> v) { md.v6 = v; }
    table t6 { key = { hdr.ip.ttl : exact; } actions = { set6; NoAction; } const default_action = NoAction(); size = 64; }
    action set7(bit<8> v) { md.v7 = v; }
    table t7 { key = { hdr.ip.id : exact; } actions = { set7; NoAction; } const default_action = NoAction(); size = 64; }

    action all() { hdr.ip.ttl = md.v0; }
    table last { key = { md.v0 : ternary; md.v1 : ternary; md.v2 : ternary; md.v3 : ternary; md.v4 : ternary; md.v5 : ternary; md.v6 : ternary; md.v7 : ternary; } actions = { send; drop; } const default_action = drop(); size = 512; }
    apply {
        if (hdr.ip.isValid()) {
            if (hdr.ip.dscp == 46) {
                if (hdr.ip.ttl > 1) { t0.apply(); if (hdr.udp.isValid()) { t1.apply(); } else { t2.apply(); } } else { drop(); }
            } else if (hdr.ip.dscp == 10 || hdr.ip.dscp == 12 || hdr.ip.dscp == 14) { t3.apply(); t4.apply(); }
            else { t5.apply(); if (hdr.tcp.isValid() && hdr.tcp.flags == 2) { t6.apply(); } else { t7.apply(); } }
            last.apply();
        } else if (hdr.ip6.isValid()) { drop(); } else { send(5); }
    }
}
#include "stack_end.p4"
