// Rules that take more TCAM than a chip has.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    table rules { key = { hdr.ip6.src : ternary; hdr.ip6.dst : ternary; } actions = { send; drop; } const default_action = drop(); size = 40960; }
    apply { rules.apply(); }
}
#include "stack_end.p4"
