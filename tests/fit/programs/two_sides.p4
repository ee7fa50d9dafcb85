// Tables in ingress and in egress fill the same stages.
#define METADATA bit<16> hop;
#define EGRESS
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action set_hop(bit<16> hop) { md.hop = hop; }
    table prefixes { key = { hdr.ip.dst : lpm; } actions = { set_hop; drop; } const default_action = drop(); size = 12288; }
    action to(PortId_t port, mac_t dst) { tm.ucast_egress_port = port; hdr.eth.dst = dst; }
    table hops { key = { md.hop : exact; } actions = { to; drop; } const default_action = drop(); size = 32768; }
    table deny { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; } actions = { drop; NoAction; } const default_action = NoAction(); size = 2048; }
    apply { if (hdr.ip.isValid()) { prefixes.apply(); hops.apply(); deny.apply(); } }
}
control Egress(EGRESS_ARGS) {
    DirectCounter<bit<32>>(CounterType_t.PACKETS) counted;
    action drop() { counted.count(); dprsr.drop_ctl = 1; }
    action pass() { counted.count(); }
    table filter { key = { eg.egress_port : exact; hdr.ip.dst : ternary; hdr.udp.dst : ternary; } actions = { drop; pass; } default_action = pass(); counters = counted; size = 4096; }
    action source(mac_t src) { hdr.eth.src = src; }
    table sources { key = { eg.egress_port : exact; } actions = { source; } size = 288; }
    action tag(bit<12> vid) { hdr.vlan.vid = vid; }
    table vlans { key = { eg.egress_port : exact; hdr.vlan.vid : exact; } actions = { tag; NoAction; } const default_action = NoAction(); size = 16384; }
    apply { sources.apply(); vlans.apply(); filter.apply(); }
}
#include "stack_end.p4"
