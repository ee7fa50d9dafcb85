// Prefixes choose a group of equal paths; a hash of the flow chooses one.
#define METADATA bit<16> group; bit<32> hash;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Hash<bit<32>>(HashAlgorithm_t.CRC32) flow;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) identity;
    ActionProfile(4096) paths;
    ActionSelector(paths, identity, SelectorMode_t.FAIR, 64, 256) groups;
    action set_group(bit<16> group) { md.group = group; }
    table prefixes { key = { hdr.ip.dst : lpm; } actions = { set_group; drop; } const default_action = drop(); size = 10240; }
    action path(mac_t dst, PortId_t port) { hdr.eth.dst = dst; tm.ucast_egress_port = port; }
    table choose { key = { md.group : exact; md.hash : selector; } actions = { path; NoAction; } size = 1024; implementation = groups; }
    apply {
        if (hdr.ip.isValid()) {
            md.hash = flow.get({ hdr.ip.src, hdr.ip.dst, hdr.ip.protocol, hdr.udp.src, hdr.udp.dst });
            prefixes.apply();
            choose.apply();
        }
    }
}
#include "stack_end.p4"
