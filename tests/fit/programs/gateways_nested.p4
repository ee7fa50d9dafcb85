// Conditions inside conditions, with tables in them.
#define METADATA bit<16> m0; bit<16> m1; bit<16> m2; bit<16> m3; bit<16> m4; bit<16> m5;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action set_0(bit<16> v) { md.m0 = v; }
    table t0 { key = { hdr.ip.dst : exact; } actions = { set_0; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_1(bit<16> v) { md.m1 = v; }
    table t1 { key = { hdr.ip.dst : exact; } actions = { set_1; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_2(bit<16> v) { md.m2 = v; }
    table t2 { key = { hdr.ip.dst : exact; } actions = { set_2; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_3(bit<16> v) { md.m3 = v; }
    table t3 { key = { hdr.ip.dst : exact; } actions = { set_3; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_4(bit<16> v) { md.m4 = v; }
    table t4 { key = { hdr.ip.dst : exact; } actions = { set_4; NoAction; } const default_action = NoAction(); size = 1024; }
    action set_5(bit<16> v) { md.m5 = v; }
    table t5 { key = { hdr.ip.dst : exact; } actions = { set_5; NoAction; } const default_action = NoAction(); size = 1024; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        if (hdr.ip.isValid()) {
            if (hdr.ip.ttl > 1) {
                if (hdr.ip.tos == 4) { t0.apply(); } else { t1.apply(); }
                if (hdr.ports.isValid() && hdr.ports.dst == 18256) { t2.apply(); }
            } else if (hdr.ip.src == hdr.ip.dst) { t3.apply(); } else { t4.apply(); }
        } else { t5.apply(); }
        send(1);
    }
}
#include "frame_end.p4"
