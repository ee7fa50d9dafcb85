// Rates of ports by low-pass filters, drops by early detection.
#define METADATA bit<32> rate; bit<20> high;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Lpf<bit<32>, bit<9>>(512) rates;
    action measure() { md.rate = rates.execute((bit<32>) hdr.ip.length, ig.ingress_port); }
    action mark(bit<6> dscp) { hdr.ip.dscp = dscp; }
    table classes { key = { md.high : ternary; } actions = { mark; drop; NoAction; } const default_action = NoAction(); size = 64; }
    apply { measure(); md.high = md.rate[31:12]; classes.apply(); send(1); }
}
#include "stack_end.p4"
