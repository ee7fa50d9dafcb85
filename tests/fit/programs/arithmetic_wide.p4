// Eight additions at once.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = hdr.words.w0 + 3;
        hdr.words.w1 = hdr.words.w1 + 3;
        hdr.words.w2 = hdr.words.w2 + 3;
        hdr.words.w3 = hdr.words.w3 + 3;
        hdr.words.w4 = hdr.words.w4 + 3;
        hdr.words.w5 = hdr.words.w5 + 3;
        hdr.words.w6 = hdr.words.w6 + 3;
        hdr.words.w7 = hdr.words.w7 + 3;
        send(1);
    }
}
#include "frame_end.p4"
