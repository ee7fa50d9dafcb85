// An exact table of 1048576 entries with a MAC address as its key.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table mac { key = { hdr.eth.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 1048576; }
    apply {
        mac.apply();
    }
}
#include "frame_end.p4"
