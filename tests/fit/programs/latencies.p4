// A histogram of what packets wait, by port: ranges, then counters.
#define EGRESS
#define METADATA bit<32> wait; bit<5> bin;
#define MORE_TYPES header bridge_t { bit<32> time; }
#define MORE_FIRST bridge_t bridge;
#define MORE_STATES state bridge { pkt.extract(hdr.bridge); transition ethernet; }
#define EGRESS_FIRST_STATE bridge
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    table outputs { key = { hdr.eth.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 16384; }
    apply { hdr.bridge.setValid(); hdr.bridge.time = (bit<32>) prsr.global_tstamp[31:0]; outputs.apply(); }
}
control Egress(EGRESS_ARGS) {
    Counter<bit<32>, bit<14>>(16384, CounterType_t.PACKETS) histogram;
    action wait() { md.wait = prsr.global_tstamp[31:0] - hdr.bridge.time; }
    action bin(bit<5> b) { md.bin = b; }
    table bins { key = { md.wait[31:12] : ternary; md.wait[11:0] : range; } actions = { bin; } size = 64; }
    apply { wait(); bins.apply(); histogram.count(md.bin ++ eg.egress_port); hdr.bridge.setInvalid(); }
}
#include "stack_end.p4"
