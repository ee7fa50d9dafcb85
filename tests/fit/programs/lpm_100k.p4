// A table of 100000 prefixes of IPv4 addresses.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { send; drop; } const default_action = drop(); size = 100000; }
    apply {
        routes.apply();
    }
}
#include "frame_end.p4"
