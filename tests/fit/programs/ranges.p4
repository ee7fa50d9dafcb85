// Two ranges of ports.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table acl { key = { hdr.ports.src : range; hdr.ports.dst : range; hdr.ip.protocol : ternary; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 1024; }
    apply {
        acl.apply();
    }
}
#include "frame_end.p4"
