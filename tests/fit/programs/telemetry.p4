// In-band telemetry: egress adds a record of 24 bytes.
#define EGRESS
#define MORE_TYPES header record_t { bit<32> id; bit<16> in_port; bit<16> out_port; bit<32> depth; bit<32> in_time; bit<32> out_time; bit<32> spent; } header bridge_t { bit<32> time; bit<16> port; bit<8> watch; }
#define MORE_FIRST bridge_t bridge;
#define MORE_LAST record_t record;
#define MORE_STATES state bridge { pkt.extract(hdr.bridge); transition ethernet; }
#define EGRESS_FIRST_STATE bridge
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    table routes { key = { hdr.ip.dst : lpm; } actions = { send; drop; } const default_action = drop(); size = 2048; }
    action watch(bit<8> id) { hdr.bridge.watch = id; }
    table watchlist { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.udp.dst : range; } actions = { watch; NoAction; } const default_action = NoAction(); size = 512; }
    apply {
        hdr.bridge.setValid(); hdr.bridge.watch = 0; hdr.bridge.time = prsr.global_tstamp[31:0];
        hdr.bridge.port = (bit<16>) ig.ingress_port;
        routes.apply();
        watchlist.apply();
    }
}
control Egress(EGRESS_ARGS) {
    bit<32> now; bit<32> spent;
    action record(bit<32> id) {
        hdr.record.setValid();
        hdr.record.id = id; hdr.record.in_port = hdr.bridge.port; hdr.record.out_port = (bit<16>) eg.egress_port;
        hdr.record.depth = (bit<32>) eg.enq_qdepth; hdr.record.in_time = hdr.bridge.time;
        hdr.ip.length = hdr.ip.length + 24;
    }
    table switch_id { key = { hdr.bridge.watch : exact; } actions = { record; NoAction; } const default_action = NoAction(); size = 256; }
    action measure() { spent = now - hdr.bridge.time; }
    apply {
        now = prsr.global_tstamp[31:0];
        measure();
        if (switch_id.apply().hit) { hdr.record.out_time = now; hdr.record.spent = spent; }
        hdr.bridge.setInvalid();
    }
}
#include "stack_end.p4"
