// A condition that compares two fields by their order.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        if (hdr.words.w0 < hdr.words.w1) { send(1); } else { send(2); }
    }
}
#include "frame_end.p4"
