// Next hops with 230 bits of action data.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action rewrite(mac_t src, mac_t dst, bit<32> from, bit<32> to, bit<12> vid, bit<3> pcp, bit<6> dscp, bit<16> sport, bit<16> dport, PortId_t port) {
        hdr.eth.src = src; hdr.eth.dst = dst; hdr.ip.src = from; hdr.ip.dst = to; hdr.vlan.vid = vid; hdr.vlan.pcp = pcp; hdr.ip.dscp = dscp;
        hdr.udp.src = sport; hdr.udp.dst = dport; tm.ucast_egress_port = port;
    }
    table sessions { key = { hdr.ip.dst : exact; hdr.udp.dst : exact; } actions = { rewrite; drop; } const default_action = drop(); size = 8192; }
    apply { sessions.apply(); }
}
#include "stack_end.p4"
