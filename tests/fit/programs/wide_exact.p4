// An exact key of 360 bits.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    table flows { key = { hdr.ip6.src : exact; hdr.ip6.dst : exact; hdr.ip6.next : exact; hdr.tcp.src : exact; hdr.tcp.dst : exact; hdr.eth.src : exact; hdr.ip6.traffic : exact; } actions = { send; drop; } const default_action = drop(); size = 16384; }
    apply { flows.apply(); }
}
#include "stack_end.p4"
