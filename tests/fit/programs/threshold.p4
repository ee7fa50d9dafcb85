// A comparison of a queue's length with a constant, in a condition.
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
    apply { if (eg.deq_qdepth > 1000) { hdr.ip.tos = 3; } }
}
#include "frame_end.p4"
