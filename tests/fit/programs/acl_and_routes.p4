// An access list, routes and next hops: a small router.
#define METADATA bit<16> hop;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action hop(bit<16> n) { md.hop = n; }
    action rewrite(PortId_t port, bit<48> dst, bit<48> src) { tm.ucast_egress_port = port; hdr.eth.dst = dst; hdr.eth.src = src; hdr.ip.ttl = hdr.ip.ttl - 1; }
    table acl { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.ip.protocol : ternary; } actions = { drop; NoAction; } const default_action = NoAction(); size = 2048; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { hop; NoAction; } const default_action = NoAction(); size = 16384; }
    table hosts { key = { hdr.ip.dst : exact; } actions = { hop; NoAction; } const default_action = NoAction(); size = 32768; }
    table hops { key = { md.hop : exact; } actions = { rewrite; drop; } const default_action = drop(); size = 4096; }
    apply {
        if (hdr.ip.isValid()) {
            if (hdr.ip.ttl > 1) {
                if (!hosts.apply().hit) { routes.apply(); }
                hops.apply();
            }
            acl.apply();
        }
    }
}
#include "frame_end.p4"
