// Four million flows.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    table flows { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ip.protocol : exact; } actions = { send; drop; } const default_action = drop(); size = 4194304; }
    apply { flows.apply(); }
}
#include "stack_end.p4"
