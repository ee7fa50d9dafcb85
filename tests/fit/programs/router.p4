// A router: hosts, prefixes of IPv4 and IPv6, next hops, rewriting.
#define METADATA bit<16> hop; bit<10> vrf;
#define INGRESS_DEPARSER_LOCALS Checksum() ipv4_sum;
#define INGRESS_DEPARSER_FIRST if (hdr.ip.isValid()) { hdr.ip.checksum = ipv4_sum.update({ hdr.ip.version, hdr.ip.ihl, hdr.ip.dscp, hdr.ip.ecn, hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset, hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst }); }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action set_hop(bit<16> hop) { md.hop = hop; }
    table my_mac { key = { hdr.eth.dst : exact; } actions = { NoAction; } const default_action = NoAction(); size = 64; }
    table hosts { key = { md.vrf : exact; hdr.ip.dst : exact; } actions = { set_hop; NoAction; } const default_action = NoAction(); size = 32768; }
    table prefixes { key = { md.vrf : exact; hdr.ip.dst : lpm; } actions = { set_hop; drop; } const default_action = drop(); size = 8192; }
    table prefixes6 { key = { md.vrf : exact; hdr.ip6.dst : lpm; } actions = { set_hop; drop; } const default_action = drop(); size = 2048; }
    action set_vrf(bit<10> vrf) { md.vrf = vrf; }
    table ports { key = { ig.ingress_port : exact; } actions = { set_vrf; } size = 288; }
    action rewrite(mac_t src, mac_t dst, PortId_t port) { hdr.eth.src = src; hdr.eth.dst = dst; tm.ucast_egress_port = port; }
    table hops { key = { md.hop : exact; } actions = { rewrite; drop; } const default_action = drop(); size = 16384; }
    apply {
        ports.apply();
        if (my_mac.apply().hit) {
            if (hdr.ip.isValid()) {
                if (hdr.ip.ttl <= 1) { drop(); }
                else { hdr.ip.ttl = hdr.ip.ttl - 1; if (!hosts.apply().hit) { prefixes.apply(); } }
            } else if (hdr.ip6.isValid()) { hdr.ip6.hops = hdr.ip6.hops - 1; prefixes6.apply(); }
            hops.apply();
        }
    }
}
#include "stack_end.p4"
