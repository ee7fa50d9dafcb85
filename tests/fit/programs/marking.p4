// Congestion marking in egress by the queue's length, and telemetry into the packet.
#define EGRESS
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        send(1);
    }
}
control Egress(EGRESS_ARGS) {
    action mark() { hdr.ip.tos = hdr.ip.tos | 3; }
    table marks { key = { eg.deq_qdepth : range; hdr.ip.tos : ternary; } actions = { mark; NoAction; } const default_action = NoAction(); size = 64; }
    apply {
        if (hdr.ip.isValid()) {
            marks.apply();
            hdr.ip.id = (bit<16>)eg.egress_port;
        }
    }
}
#include "frame_end.p4"
