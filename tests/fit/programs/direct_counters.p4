// A table of 32,768 entries with a counter for each.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    action seen(PortId_t port) { hits.count(); tm.ucast_egress_port = port; }
    action missed() { hits.count(); dprsr.drop_ctl = 1; }
    table flows { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; hdr.ports.dst : exact; hdr.ip.protocol : exact; } actions = { seen; missed; } const default_action = missed(); size = 32768; counters = hits; }
    apply {
        flows.apply();
    }
}
#include "frame_end.p4"
