// Eight additions, each to the sum before.
#define METADATA bit<32> s0; bit<32> s1; bit<32> s2; bit<32> s3; bit<32> s4; bit<32> s5; bit<32> s6; bit<32> s7;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.s0 = hdr.words.w0 + hdr.words.w1;
        md.s1 = md.s0 + hdr.words.w1;
        md.s2 = md.s1 + hdr.words.w2;
        md.s3 = md.s2 + hdr.words.w3;
        md.s4 = md.s3 + hdr.words.w4;
        md.s5 = md.s4 + hdr.words.w5;
        md.s6 = md.s5 + hdr.words.w6;
        md.s7 = md.s6 + hdr.words.w7;
        hdr.words.w0 = md.s7;
        send(1);
    }
}
#include "frame_end.p4"
