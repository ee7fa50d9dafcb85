// Active queue management at egress: the average of the time in the queue by port, marks of congestion in the IPv4 header.
#include "architecture.p4"
struct headers_t { ethernet_t eth; ipv4_t ip; }
struct metadata_t { bit<32> waited; bit<32> average; bit<20> level; bit<1> mark; bit<16> dice; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    action forward(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; hdr.ip.ttl = hdr.ip.ttl - 1; tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 16384; }
    apply { routes.apply(); }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition accept; }
}
control Egress(EGRESS_ARGS) {
    Lpf<bit<32>, PortId_t>(512) smooth;
    Random<bit<16>>() random;
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) marked;
    action waited() { md.waited = (bit<32>)eg.deq_timedelta; }
    action average() { md.average = smooth.execute(md.waited, eg.egress_port); }
    action level() { md.level = md.average[25:6]; }
    action dice() { md.dice = random.get(); }
    action mark() { md.mark = 1; }
    table curve { key = { md.level : range; md.dice : range; } actions = { mark; NoAction; } const default_action = NoAction(); size = 64; }
    action congested() { hdr.ip.tos[1:0] = 3; marked.count(eg.egress_port); }
    action drop() { dprsr.drop_ctl = 1; }
    table outcomes { key = { md.mark : exact; hdr.ip.tos : ternary; } actions = { congested; drop; NoAction; } const default_action = NoAction(); size = 16; }
    apply {
        if (hdr.ip.isValid()) {
            waited();
            average();
            dice();
            level();
            curve.apply();
            outcomes.apply();
        }
    }
}
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
