// A gateway of private networks: the port gives the network, routes are looked up in it, packets leave in GRE with the network's key.
#include "architecture.p4"
header gre_t { bit<16> flags; bit<16> type; bit<32> key; }
struct headers_t { ethernet_t eth; ipv4_t outer; gre_t gre; ipv4_t ip; }
struct metadata_t { bit<16> vrf; bit<32> peer; bit<32> key; bit<1> encap; bit<16> hop; bit<1> decap; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800 : first; default : accept; } }
    state first { transition select(pkt.lookahead<bit<80>>()[7:0]) { 47 : outer; default : ipv4; } }
    state outer { pkt.extract(hdr.outer); pkt.extract(hdr.gre); transition select(hdr.gre.flags, hdr.gre.type) { (0x2000, 0x0800) : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    action network(bit<16> vrf) { md.vrf = vrf; }
    table ports { key = { ig.ingress_port : exact; } actions = { network; NoAction; } const default_action = NoAction(); size = 512; }
    action inside(bit<16> vrf) { md.vrf = vrf; md.decap = 1; }
    table tunnels { key = { hdr.outer.dst : exact; hdr.gre.key : exact; } actions = { inside; NoAction; } const default_action = NoAction(); size = 16384; }
    action strip() { hdr.outer.setInvalid(); hdr.gre.setInvalid(); }
    action local(bit<16> hop) { md.hop = hop; }
    action remote(bit<32> peer, bit<32> key, bit<16> hop) { md.peer = peer; md.key = key; md.encap = 1; md.hop = hop; }
    table routes { key = { md.vrf : exact; hdr.ip.dst : lpm; } actions = { local; remote; NoAction; } const default_action = NoAction(); size = 12288; }
    action wrap(bit<32> own) {
        hdr.outer.setValid(); hdr.gre.setValid();
        hdr.gre.flags = 0x2000; hdr.gre.type = 0x0800; hdr.gre.key = md.key;
        hdr.outer.version = 4; hdr.outer.ihl = 5; hdr.outer.tos = hdr.ip.tos; hdr.outer.length = hdr.ip.length + 28; hdr.outer.id = 0;
        hdr.outer.flags = 0; hdr.outer.offset = 0; hdr.outer.ttl = 64; hdr.outer.protocol = 47; hdr.outer.src = own; hdr.outer.dst = md.peer;
    }
    table wraps { key = { md.encap : exact; } actions = { wrap; NoAction; } const default_action = NoAction(); size = 2; }
    action via(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; tm.ucast_egress_port = port; }
    table hops { key = { md.hop : exact; } actions = { via; NoAction; } const default_action = NoAction(); size = 8192; }
    apply {
        if (hdr.gre.isValid()) { tunnels.apply(); } else { ports.apply(); }
        if (md.decap == 1) { strip(); }
        if (hdr.ip.isValid()) {
            routes.apply();
            hdr.ip.ttl = hdr.ip.ttl - 1;
            wraps.apply();
            hops.apply();
        }
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() outer_sum; Checksum() sum;
    apply {
        if (hdr.outer.isValid()) { hdr.outer.checksum = outer_sum.update({ hdr.outer.version, hdr.outer.ihl, hdr.outer.tos, hdr.outer.length, hdr.outer.id, hdr.outer.flags, hdr.outer.offset, hdr.outer.ttl, hdr.outer.protocol, hdr.outer.src, hdr.outer.dst }); }
        if (hdr.ip.isValid()) { hdr.ip.checksum = sum.update({ hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset, hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst }); }
        pkt.emit(hdr);
    }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) { state start { pkt.extract(eg); transition accept; } }
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
