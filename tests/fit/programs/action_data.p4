// An action with eight words of data, in a table of 16,384 entries.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action fill(bit<32> p0, bit<32> p1, bit<32> p2, bit<32> p3, bit<32> p4, bit<32> p5, bit<32> p6, bit<32> p7) {
        hdr.words.w0 = p0;
        hdr.words.w1 = p1;
        hdr.words.w2 = p2;
        hdr.words.w3 = p3;
        hdr.words.w4 = p4;
        hdr.words.w5 = p5;
        hdr.words.w6 = p6;
        hdr.words.w7 = p7;
    }
    table fills { key = { hdr.ip.dst : exact; } actions = { fill; NoAction; } const default_action = NoAction(); size = 16384; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        fills.apply();
        send(1);
    }
}
#include "frame_end.p4"
