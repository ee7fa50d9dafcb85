// Three numbers added in one action.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action total() { hdr.tcp.window = hdr.ip.length + hdr.ip.id + hdr.tcp.urgent; }
    table t { key = { hdr.ip.dst : exact; } actions = { total; NoAction; } const default_action = NoAction(); size = 64; }
    apply { t.apply(); send(1); }
}
#include "stack_end.p4"
