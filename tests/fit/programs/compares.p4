// A condition compares two fields by their order.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    apply { if (hdr.tcp.seq < hdr.tcp.ack) { send(1); } else { send(2); } }
}
#include "stack_end.p4"
