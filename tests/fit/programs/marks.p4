// Ten small tables side by side map code points.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<3> v) { hdr.vlan.pcp = v; }
    table t0 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set0; NoAction; } const default_action = NoAction(); size = 4096; }
    action set1(bit<1> v) { hdr.vlan.dei = v; }
    table t1 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set1; NoAction; } const default_action = NoAction(); size = 4096; }
    action set2(QueueId_t v) { tm.qid = v; }
    table t2 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set2; NoAction; } const default_action = NoAction(); size = 4096; }
    action set3(bit<3> v) { tm.ingress_cos = v; }
    table t3 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set3; NoAction; } const default_action = NoAction(); size = 4096; }
    action set4(bit<2> v) { tm.packet_color = v; }
    table t4 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set4; NoAction; } const default_action = NoAction(); size = 4096; }
    action set5(bit<2> v) { hdr.ip.ecn = v; }
    table t5 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set5; NoAction; } const default_action = NoAction(); size = 4096; }
    action set6(bit<8> v) { hdr.ip6.traffic = v; }
    table t6 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set6; NoAction; } const default_action = NoAction(); size = 4096; }
    action set7(bit<8> v) { hdr.ip.ttl = v; }
    table t7 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set7; NoAction; } const default_action = NoAction(); size = 4096; }
    action set8(bit<12> v) { hdr.vlan.vid = v; }
    table t8 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set8; NoAction; } const default_action = NoAction(); size = 4096; }
    action set9(bit<16> v) { hdr.udp.src = v; }
    table t9 { key = { hdr.ip.dscp : exact; ig.ingress_port : exact; } actions = { set9; NoAction; } const default_action = NoAction(); size = 4096; }

    apply { t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); t9.apply(); send(1); }
}
#include "stack_end.p4"
