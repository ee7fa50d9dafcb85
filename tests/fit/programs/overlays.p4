// Ends of tunnels: two VLAN tags, up to four MPLS labels, IPv4 and IPv6, then VXLAN, GRE or GTP with an inner packet, which is forwarded by
// its own addresses.
#include "architecture.p4"
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
header mpls_t { bit<20> label; bit<3> class; bit<1> bottom; bit<8> ttl; }
header vxlan_t { bit<8> flags; bit<24> reserved; bit<24> vni; bit<8> reserved2; }
header gre_t { bit<1> has_sum; bit<1> routing; bit<1> has_key; bit<1> has_seq; bit<9> zero; bit<3> version; bit<16> type; }
header gre_key_t { bit<32> key; }
header gtp_t { bit<3> version; bit<1> pt; bit<1> spare; bit<3> more; bit<8> kind; bit<16> length; bit<32> teid; }
struct headers_t {
    ethernet_t eth; vlan_t[2] vlans; mpls_t[4] labels; ipv4_t ip; ipv6_t ip6; udp_t udp; vxlan_t vxlan; gre_t gre; gre_key_t gre_key; gtp_t gtp;
    ethernet_t inner_eth; ipv4_t inner_ip; ipv6_t inner_ip6;
}
struct metadata_t { bit<24> tenant; bit<8> tunnel; bit<1> ends; bit<16> bridge; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); transition ethernet; }
    state ethernet {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x8100 : vlans; 0x88a8 : vlans; 0x8847 : labels; 0x0800 : ipv4; 0x86dd : ipv6; default : accept; }
    }
    state vlans {
        pkt.extract(hdr.vlans.next);
        transition select(hdr.vlans.last.type) { 0x8100 : vlans; 0x8847 : labels; 0x0800 : ipv4; 0x86dd : ipv6; default : accept; }
    }
    state labels {
        pkt.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) { 0 : labels; default : under_labels; }
    }
    state under_labels { transition select(pkt.lookahead<bit<4>>()) { 4 : ipv4; 6 : ipv6; default : accept; } }
    state ipv4 {
        pkt.extract(hdr.ip);
        transition select(hdr.ip.ihl, hdr.ip.offset, hdr.ip.protocol) { (5, 0, 17) : udp; (5, 0, 47) : gre; (5, 0, 4) : inner_ipv4; default : accept; }
    }
    state ipv6 { pkt.extract(hdr.ip6); transition select(hdr.ip6.next) { 17 : udp; 47 : gre; 4 : inner_ipv4; 41 : inner_ipv6; default : accept; } }
    state udp { pkt.extract(hdr.udp); transition select(hdr.udp.dst) { 4789 : vxlan; 2152 : gtp; default : accept; } }
    state vxlan { pkt.extract(hdr.vxlan); md.tunnel = 1; transition inner_ethernet; }
    state gtp { pkt.extract(hdr.gtp); md.tunnel = 2; transition select(hdr.gtp.more, hdr.gtp.kind) { (0, 255) : under_gtp; default : accept; } }
    state under_gtp { transition select(pkt.lookahead<bit<4>>()) { 4 : inner_ipv4; 6 : inner_ipv6; default : accept; } }
    state gre { pkt.extract(hdr.gre); transition select(hdr.gre.has_sum, hdr.gre.has_key, hdr.gre.has_seq) { (0, 0, 0) : under_gre; (0, 1, 0) : gre_key; default : accept; } }
    state gre_key { pkt.extract(hdr.gre_key); transition under_gre; }
    state under_gre { md.tunnel = 3; transition select(hdr.gre.type) { 0x6558 : inner_ethernet; 0x0800 : inner_ipv4; 0x86dd : inner_ipv6; default : accept; } }
    state inner_ethernet { pkt.extract(hdr.inner_eth); transition select(hdr.inner_eth.type) { 0x0800 : inner_ipv4; 0x86dd : inner_ipv6; default : accept; } }
    state inner_ipv4 { pkt.extract(hdr.inner_ip); transition accept; }
    state inner_ipv6 { pkt.extract(hdr.inner_ip6); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    action ends() { md.ends = 1; }
    table own4 { key = { hdr.ip.dst : exact; md.tunnel : exact; } actions = { ends; NoAction; } const default_action = NoAction(); size = 1024; }
    table own6 { key = { hdr.ip6.dst : exact; md.tunnel : exact; } actions = { ends; NoAction; } const default_action = NoAction(); size = 1024; }
    action tenant(bit<24> n) { md.tenant = n; }
    table by_vni { key = { hdr.vxlan.vni : exact; } actions = { tenant; NoAction; } const default_action = NoAction(); size = 4096; }
    table by_teid { key = { hdr.gtp.teid : exact; } actions = { tenant; NoAction; } const default_action = NoAction(); size = 32768; }
    table by_gre { key = { hdr.gre_key.key : exact; hdr.ip.src : exact; } actions = { tenant; NoAction; } const default_action = NoAction(); size = 4096; }
    action open() {
        hdr.vlans[0].setInvalid();
        hdr.vlans[1].setInvalid();
        hdr.labels[0].setInvalid();
        hdr.labels[1].setInvalid();
        hdr.labels[2].setInvalid();
        hdr.labels[3].setInvalid();
        hdr.ip.setInvalid();
        hdr.ip6.setInvalid();
        hdr.udp.setInvalid();
        hdr.vxlan.setInvalid();
        hdr.gre.setInvalid();
        hdr.gre_key.setInvalid();
        hdr.gtp.setInvalid();
        hdr.inner_eth.setInvalid();
    }
    action hop(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; tm.ucast_egress_port = port; }
    action hop4(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; hdr.eth.type = 0x0800; tm.ucast_egress_port = port; }
    action hop6(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; hdr.eth.type = 0x86dd; tm.ucast_egress_port = port; }
    table hosts4 { key = { md.tenant : exact; hdr.inner_ip.dst : exact; } actions = { hop4; NoAction; } const default_action = NoAction(); size = 16384; }
    table hosts6 { key = { md.tenant : exact; hdr.inner_ip6.dst : exact; } actions = { hop6; NoAction; } const default_action = NoAction(); size = 8192; }
    table macs { key = { hdr.eth.dst : exact; } actions = { hop; NoAction; } const default_action = NoAction(); size = 4096; }
    table labels { key = { hdr.labels[0].label : exact; } actions = { hop; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.ip.isValid()) { own4.apply(); } else if (hdr.ip6.isValid()) { own6.apply(); }
        if (md.ends == 1) {
            if (hdr.vxlan.isValid()) { by_vni.apply(); }
            else if (hdr.gtp.isValid()) { by_teid.apply(); }
            else if (hdr.gre_key.isValid()) { by_gre.apply(); }
            if (hdr.inner_ip.isValid()) { hosts4.apply(); } else if (hdr.inner_ip6.isValid()) { hosts6.apply(); }
            open();
        } else if (hdr.labels[0].isValid()) {
            labels.apply();
        } else {
            macs.apply();
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
