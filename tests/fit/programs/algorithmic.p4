// Prefixes in SRAM: Alpm, 131,072 of them.
#define METADATA bit<16> hop; bit<10> vrf;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Alpm(number_partitions = 4096, subtrees_per_partition = 2) algorithm;
    action set_hop(bit<16> hop) { md.hop = hop; }
    table prefixes { key = { md.vrf : exact; hdr.ip.dst : lpm; } actions = { set_hop; drop; } default_action = drop(); size = 131072; alpm = algorithm; }
    action set_vrf(bit<10> vrf) { md.vrf = vrf; }
    table ports { key = { ig.ingress_port : exact; } actions = { set_vrf; } size = 288; }
    table hops { key = { md.hop : exact; } actions = { send; drop; } const default_action = drop(); size = 16384; }
    apply { ports.apply(); prefixes.apply(); hops.apply(); }
}
#include "stack_end.p4"
