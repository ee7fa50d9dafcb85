// An action that decides by a field of the packet.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action lower() { if (hdr.ip.ttl > 10) { hdr.ip.ttl = hdr.ip.ttl - 10; } else { hdr.ip.ttl = 0; } }
    table t { key = { hdr.ip.dst : exact; } actions = { lower; NoAction; } const default_action = NoAction(); size = 64; }
    apply { t.apply(); send(1); }
}
#include "stack_end.p4"
