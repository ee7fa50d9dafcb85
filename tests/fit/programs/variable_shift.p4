// A shift by a number from the packet.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = hdr.words.w1 << hdr.ip.tos;
        send(1);
    }
}
#include "frame_end.p4"
