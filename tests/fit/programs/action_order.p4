// An action whose second statement needs the first one's result.
#define METADATA bit<32> s;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action both() { md.s = hdr.words.w0 + hdr.words.w1; hdr.words.w2 = md.s + hdr.words.w3; tm.ucast_egress_port = 1; }
    table t { key = { hdr.ip.dst : exact; } actions = { both; NoAction; } const default_action = NoAction(); size = 512; }
    apply {
        t.apply();
    }
}
#include "frame_end.p4"
