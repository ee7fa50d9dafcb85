// A key of 40 bytes.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table wide { key = { hdr.eth.dst : exact; hdr.eth.src : exact; hdr.ip.src : exact; hdr.ip.dst : exact; hdr.words.w0 : exact; hdr.words.w1 : exact; hdr.words.w2 : exact; hdr.words.w3 : exact; hdr.ports.src : exact; hdr.ports.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 4096; }
    apply {
        wide.apply();
    }
}
#include "frame_end.p4"
