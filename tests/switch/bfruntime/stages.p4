#include <core.p4>
#include <tna.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header vlan_t { bit<16> tag; bit<16> type; }
struct headers_t { ethernet_t ethernet; vlan_t[2] vlan; }
struct metadata_t { bit<8> class; PortId_t port; bool flag; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start { pkt.extract(ig_intr_md); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.ethernet);
       transition select(hdr.ethernet.type) { 0x8100: vlan; default: accept; } }
    state vlan { pkt.extract(hdr.vlan.next); transition accept; }
}
control Ingress(inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig_intr_md,
   in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d,
   inout ingress_intrinsic_metadata_for_tm_t tm) {
    action classify(bit<8> class) { md.class = class; }
    table first { key = { hdr.ethernet.dst : exact; } actions = { classify; NoAction; } const default_action = NoAction; size = 64; }
    action send(PortId_t port) { tm.ucast_egress_port = port; hdr.ethernet.src = 1; }
    action drop() { d.drop_ctl = 1; }
    table second { key = { md.class : exact; } actions = { send; drop; } default_action = drop; size = 64; }
    table third { key = { hdr.vlan[0].tag : exact; } actions = { drop; NoAction; } size = 64; }
    apply { first.apply(); if (second.apply().hit) { if (hdr.vlan[0].isValid()) { third.apply(); } } }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t d) { apply { pkt.emit(hdr); } }
struct egress_headers_t { ethernet_t ethernet; }
parser EgressParser(packet_in pkt, out egress_headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg_intr_md) { state start { pkt.extract(eg_intr_md); pkt.extract(hdr.ethernet); transition accept; } }
control Egress(inout egress_headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg_intr_md) {
    action mark() { hdr.ethernet.type = 0x1234; }
    table out_port { key = { eg_intr_md.egress_port : exact; } actions = { mark; NoAction; } size = 64; }
    apply { out_port.apply(); } }
control EgressDeparser(packet_out pkt, inout egress_headers_t hdr, in metadata_t md) { apply { pkt.emit(hdr); } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
