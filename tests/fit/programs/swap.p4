// Addresses are exchanged, and three numbers computed at once.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action turn() { bit<48> d = hdr.eth.dst; hdr.eth.dst = hdr.eth.src; hdr.eth.src = d; bit<32> a = hdr.ip.src; hdr.ip.src = hdr.ip.dst; hdr.ip.dst = a; }
    table turns { key = { hdr.ports.dst : exact; } actions = { turn; NoAction; } const default_action = NoAction(); size = 64; }
    apply {
        turns.apply();
        hdr.words.w0 = hdr.words.w1 & 0xff00ff00;
        hdr.words.w2 = hdr.words.w3 ^ hdr.words.w4;
        hdr.ip.ttl = hdr.ip.ttl |-| 1;
        send(1);
    }
}
#include "frame_end.p4"
