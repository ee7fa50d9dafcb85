// Address translation in both directions, 65,536 flows each.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action outward(bit<32> src, bit<16> port) { hdr.ip.src = src; hdr.ports.src = port; }
    action inward(bit<32> dst, bit<16> port) { hdr.ip.dst = dst; hdr.ports.dst = port; }
    table out_flows { key = { hdr.ip.src : exact; hdr.ports.src : exact; hdr.ip.protocol : exact; } actions = { outward; NoAction; } const default_action = NoAction(); size = 65536; }
    table in_flows { key = { hdr.ip.dst : exact; hdr.ports.dst : exact; hdr.ip.protocol : exact; } actions = { inward; NoAction; } const default_action = NoAction(); size = 65536; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { send; drop; } const default_action = drop(); size = 4096; }
    apply {
        if (hdr.ports.isValid()) {
            if (ig.ingress_port == 1) { out_flows.apply(); } else { in_flows.apply(); }
        }
        routes.apply();
    }
}
#include "frame_end.p4"
