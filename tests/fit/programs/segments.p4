// Segment routing over IPv6: the next of up to four segments becomes the target; at the end the header is removed.
#include "architecture.p4"
header srh_t { bit<8> next; bit<8> length; bit<8> kind; bit<8> left; bit<8> last; bit<8> flags; bit<16> tag; }
header segment_t { bit<128> address; }
struct headers_t { ethernet_t eth; ipv6_t ip6; srh_t srh; segment_t[4] segments; }
struct metadata_t { bit<1> own; bit<16> vrf; bit<16> hop; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    ParserCounter() left;
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x86dd : ipv6; default : accept; } }
    state ipv6 { pkt.extract(hdr.ip6); transition select(hdr.ip6.next) { 43 : srh; default : accept; } }
    state srh { pkt.extract(hdr.srh); transition select(hdr.srh.last) { 0 : one; 1 : two; 2 : three; 3 : four; default : accept; } }
    state one { pkt.extract(hdr.segments[0]); transition accept; }
    state two { pkt.extract(hdr.segments[0]); pkt.extract(hdr.segments[1]); transition accept; }
    state three { pkt.extract(hdr.segments[0]); pkt.extract(hdr.segments[1]); pkt.extract(hdr.segments[2]); transition accept; }
    state four { pkt.extract(hdr.segments[0]); pkt.extract(hdr.segments[1]); pkt.extract(hdr.segments[2]); pkt.extract(hdr.segments[3]); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    action own(bit<16> vrf) { md.own = 1; md.vrf = vrf; }
    table sids { key = { hdr.ip6.dst : exact; } actions = { own; NoAction; } const default_action = NoAction(); size = 2048; }
    action to0() { hdr.ip6.dst = hdr.segments[0].address; hdr.srh.left = 0; }
    action to1() { hdr.ip6.dst = hdr.segments[1].address; hdr.srh.left = 1; }
    action to2() { hdr.ip6.dst = hdr.segments[2].address; hdr.srh.left = 2; }
    action ends() { hdr.ip6.next = hdr.srh.next; hdr.srh.setInvalid(); hdr.segments[0].setInvalid(); hdr.segments[1].setInvalid();
        hdr.segments[2].setInvalid(); hdr.segments[3].setInvalid(); }
    table steps { key = { hdr.srh.left : exact; } actions = { to0; to1; to2; ends; NoAction; } const default_action = NoAction();
        const entries = { 0 : ends(); 1 : to0(); 2 : to1(); 3 : to2(); } size = 4; }
    action hop(bit<16> n) { md.hop = n; }
    table routes { key = { md.vrf : exact; hdr.ip6.dst : lpm; } actions = { hop; NoAction; } const default_action = NoAction(); size = 4096; }
    action via(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; hdr.ip6.hops = hdr.ip6.hops - 1; tm.ucast_egress_port = port; }
    table hops { key = { md.hop : exact; } actions = { via; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.ip6.isValid()) {
            sids.apply();
            if (md.own == 1 && hdr.srh.isValid()) { steps.apply(); }
            routes.apply();
            hops.apply();
        }
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) { state start { pkt.extract(eg); transition accept; } }
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
