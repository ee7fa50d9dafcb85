// Two additions in one assignment.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = hdr.words.w1 + hdr.words.w2 + hdr.words.w3;
        send(1);
    }
}
#include "frame_end.p4"
