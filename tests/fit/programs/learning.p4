// An Ethernet switch: addresses learned by digest, VLANs of ports, floods by multicast, broadcast policed for each port.
#include "architecture.p4"
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
struct headers_t { ethernet_t eth; vlan_t vlan; }
struct metadata_t { bit<12> vid; bit<1> known; bit<1> moved; bit<9> port; bit<8> colour; bit<1> broadcast; }
struct learn_t { bit<48> mac; bit<12> vid; bit<9> port; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x8100 : vlan; default : accept; } }
    state vlan { pkt.extract(hdr.vlan); md.vid = hdr.vlan.vid; transition accept; }
}
control Ingress(INGRESS_ARGS) {
    Meter<PortId_t>(512, MeterType_t.PACKETS) storm;
    action pvid(bit<12> v) { md.vid = v; }
    table pvids { key = { ig.ingress_port : exact; } actions = { pvid; NoAction; } const default_action = NoAction(); size = 512; }
    action allowed() { }
    action not_allowed() { dprsr.drop_ctl = 1; exit; }
    table members { key = { ig.ingress_port : exact; md.vid : exact; } actions = { allowed; not_allowed; } const default_action = not_allowed(); size = 8192; }
    action known(PortId_t port) { md.known = 1; md.port = port; }
    table sources { key = { hdr.eth.src : exact; md.vid : exact; } actions = { known; NoAction; } const default_action = NoAction(); idle_timeout = true; size = 32768; }
    action differs() { md.moved = 1; }
    table moves { key = { md.known : exact; md.port : exact; ig.ingress_port : exact; } actions = { NoAction; differs; } const default_action = differs(); size = 512; }
    action to(PortId_t port) { tm.ucast_egress_port = port; }
    action flood() { tm.mcast_grp_a = (bit<16>)md.vid; tm.level2_exclusion_id = ig.ingress_port; }
    table targets { key = { hdr.eth.dst : exact; md.vid : exact; } actions = { to; flood; } const default_action = flood(); size = 32768; }
    action broadcast() { md.broadcast = 1; }
    table groups { key = { hdr.eth.dst : ternary; } actions = { broadcast; NoAction; } const default_action = NoAction(); const entries = { 0x010000000000 &&& 0x010000000000 : broadcast(); } }
    action police() { md.colour = storm.execute(ig.ingress_port); }
    apply {
        if (!hdr.vlan.isValid()) { pvids.apply(); }
        members.apply();
        sources.apply();
        moves.apply();
        if (md.moved == 1) { dprsr.digest_type = 1; }
        groups.apply();
        if (md.broadcast == 1) {
            police();
            if (md.colour == 3) { dprsr.drop_ctl = 1; }
        }
        targets.apply();
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Digest<learn_t>() learned;
    apply { if (dprsr.digest_type == 1) { learned.pack({ hdr.eth.src, md.vid, md.port }); } pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) { state start { pkt.extract(eg); transition accept; } }
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
