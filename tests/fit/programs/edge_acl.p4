// Access control at an edge: groups of sources and targets by prefix, then rules with ranges of ports for IPv4 and IPv6, each counted.
#include "architecture.p4"
struct headers_t { ethernet_t eth; ipv4_t ip; ipv6_t ip6; tcp_t tcp; udp_t udp; }
struct metadata_t { bit<12> from_group; bit<12> to_group; bit<16> src_port; bit<16> dst_port; bit<8> flags; bit<8> protocol; bit<3> tier; bit<1> denied; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; 0x86dd : ipv6; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); md.protocol = hdr.ip.protocol; transition select(hdr.ip.offset, hdr.ip.protocol) { (0, 6) : tcp; (0, 17) : udp; default : accept; } }
    state ipv6 { pkt.extract(hdr.ip6); md.protocol = hdr.ip6.next; transition select(hdr.ip6.next) { 6 : tcp; 17 : udp; default : accept; } }
    state tcp { pkt.extract(hdr.tcp); md.src_port = hdr.tcp.src; md.dst_port = hdr.tcp.dst; md.flags = hdr.tcp.flags; transition accept; }
    state udp { pkt.extract(hdr.udp); md.src_port = hdr.udp.src; md.dst_port = hdr.udp.dst; transition accept; }
}
control Ingress(INGRESS_ARGS) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits4;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits6;
    action from_group(bit<12> g) { md.from_group = g; }
    action to_group(bit<12> g) { md.to_group = g; }
    table sources { key = { hdr.ip.src : lpm; } actions = { from_group; NoAction; } const default_action = NoAction(); size = 4096; }
    table targets { key = { hdr.ip.dst : lpm; } actions = { to_group; NoAction; } const default_action = NoAction(); size = 4096; }
    table sources6 { key = { hdr.ip6.src : lpm; } actions = { from_group; NoAction; } const default_action = NoAction(); size = 1024; }
    table targets6 { key = { hdr.ip6.dst : lpm; } actions = { to_group; NoAction; } const default_action = NoAction(); size = 1024; }
    action permit4(bit<3> tier) { hits4.count(); md.tier = tier; }
    action deny4() { hits4.count(); md.denied = 1; }
    table rules4 {
        key = { md.from_group : ternary; md.to_group : ternary; md.protocol : ternary; md.src_port : range; md.dst_port : range; md.flags : ternary; }
        actions = { permit4; deny4; }
        const default_action = deny4();
        counters = hits4;
        size = 2048;
    }
    action permit6(bit<3> tier) { hits6.count(); md.tier = tier; }
    action deny6() { hits6.count(); md.denied = 1; }
    table rules6 {
        key = { md.from_group : ternary; md.to_group : ternary; md.protocol : ternary; md.dst_port : range; md.flags : ternary; }
        actions = { permit6; deny6; }
        const default_action = deny6();
        counters = hits6;
        size = 1024;
    }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table macs { key = { hdr.eth.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 16384; }
    action queue(QueueId_t q) { tm.qid = q; }
    table tiers { key = { md.tier : exact; } actions = { queue; } size = 8; }
    apply {
        if (hdr.ip.isValid()) {
            sources.apply();
            targets.apply();
            rules4.apply();
        } else if (hdr.ip6.isValid()) {
            sources6.apply();
            targets6.apply();
            rules6.apply();
        }
        if (md.denied == 1) {
            dprsr.drop_ctl = 1;
        } else {
            macs.apply();
            tiers.apply();
        }
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
