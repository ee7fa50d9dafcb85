// Address translation that updates the checksums of IPv4 and UDP in the deparser.
#define METADATA bit<16> residual; bit<1> changed;
#define INGRESS_DEPARSER_LOCALS Checksum() ipv4_sum; Checksum() udp_sum;
#define INGRESS_DEPARSER_FIRST hdr.ip.checksum = ipv4_sum.update({ hdr.ip.version, hdr.ip.ihl, hdr.ip.dscp, hdr.ip.ecn, hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset, hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst }); if (md.changed == 1) { hdr.udp.checksum = udp_sum.update({ hdr.ip.src, hdr.ip.dst, hdr.udp.src, hdr.udp.dst, hdr.udp.length }); }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action source(bit<32> address, bit<16> port) { hdr.ip.src = address; hdr.udp.src = port; md.changed = 1; }
    action destination(bit<32> address, bit<16> port) { hdr.ip.dst = address; hdr.udp.dst = port; md.changed = 1; }
    table outward { key = { hdr.ip.src : exact; hdr.udp.src : exact; } actions = { source; NoAction; } const default_action = NoAction(); size = 16384; }
    table inward { key = { hdr.ip.dst : exact; hdr.udp.dst : exact; } actions = { destination; NoAction; } const default_action = NoAction(); size = 16384; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { send; drop; } const default_action = drop(); size = 1024; }
    apply {
        if (hdr.udp.isValid()) {
            if (ig.ingress_port == 1) { outward.apply(); } else { inward.apply(); }
        }
        routes.apply();
    }
}
#include "stack_end.p4"
