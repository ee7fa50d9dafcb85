// A length times a factor from a table.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action weigh(bit<16> factor) { hdr.ip.id = hdr.ip.length * factor; }
    table weights { key = { hdr.ip.dscp : exact; } actions = { weigh; NoAction; } const default_action = NoAction(); size = 64; }
    apply { weights.apply(); send(1); }
}
#include "stack_end.p4"
