// A ternary key of five fields, 13 bytes.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table acl { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.ip.protocol : ternary; hdr.ports.src : ternary; hdr.ports.dst : ternary; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        acl.apply();
    }
}
#include "frame_end.p4"
