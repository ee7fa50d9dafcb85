// Prefixes and hosts of IPv6, with access lists after them.
#define METADATA bit<14> hop; bit<10> label;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action hop(bit<14> h) { md.hop = h; }
    table hosts { key = { hdr.ip6.dst : exact; } actions = { hop; NoAction; } const default_action = NoAction(); size = 16384; }
    table prefixes { key = { hdr.ip6.dst[127:64] : lpm; } actions = { hop; drop; } const default_action = drop(); size = 8192; }
    action to(PortId_t port, mac_t mac, bit<10> label) { tm.ucast_egress_port = port; hdr.eth.dst = mac; md.label = label; }
    table hops { key = { md.hop : exact; } actions = { to; drop; } const default_action = drop(); size = 16384; }
    table acl { key = { hdr.ip6.src : ternary; md.label : ternary; hdr.ip6.next : ternary; } actions = { drop; NoAction; } const default_action = NoAction(); size = 1024; }
    apply {
        if (hdr.ip6.isValid()) {
            if (!hosts.apply().hit) { prefixes.apply(); }
            hops.apply(); acl.apply();
            hdr.ip6.hops = hdr.ip6.hops |-| 1;
        }
    }
}
#include "stack_end.p4"
