// Postcards: egress mirrors packets that met a long queue, or a sampled few, with a header of what they met, numbered for each port.
#include "architecture.p4"
header card_t { bit<8> kind; bit<8> reason; bit<16> sequence; bit<32> node; bit<16> ingress_port; bit<16> egress_port; bit<32> arrived; bit<32> left; bit<8> queue;
    bit<24> depth; }
header bridge_t { bit<8> kind; @padding bit<7> none; bit<9> ingress_port; bit<32> arrived; }
struct headers_t { bridge_t bridge; ethernet_t eth; ipv4_t ip; udp_t udp; }
struct metadata_t {
    bit<8> kind; bit<8> reason; bit<16> sequence; bit<32> node; bit<16> ingress_port; bit<16> egress_port; bit<32> arrived; bit<32> left; bit<8> queue; bit<24> depth;
    MirrorId_t session; bit<16> dice; bit<19> limit; bit<32> waited;
}
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition select(hdr.ip.protocol) { 17 : udp; default : accept; } }
    state udp { pkt.extract(hdr.udp); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    action forward(PortId_t port, QueueId_t queue) { tm.ucast_egress_port = port; tm.qid = queue; }
    action drop() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; drop; } const default_action = drop(); size = 8192; }
    action bridge() {
        hdr.bridge.setValid();
        hdr.bridge.kind = 1;
        hdr.bridge.none = 0;
        hdr.bridge.ingress_port = ig.ingress_port;
        hdr.bridge.arrived = ig.ingress_mac_tstamp[31:0];
    }
    apply {
        routes.apply();
        bridge();
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); bit<8> kind = pkt.lookahead<bit<8>>(); transition select(kind) { 1 : bridged; default : card; } }
    state bridged { pkt.extract(hdr.bridge); transition ethernet; }
    state card { pkt.advance(160); transition ethernet; }
    state ethernet { pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition select(hdr.ip.protocol) { 17 : udp; default : accept; } }
    state udp { pkt.extract(hdr.udp); transition accept; }
}
control Egress(EGRESS_ARGS) {
    Random<bit<16>>() random;
    Register<bit<16>, PortId_t>(512) sequences;
    RegisterAction<bit<16>, PortId_t, bit<16>>(sequences) next = { void apply(inout bit<16> v, out bit<16> r) { v = v + 1; r = v; } };
    action dice() { md.dice = random.get(); }
    action waited() { md.waited = prsr.global_tstamp[31:0] - hdr.bridge.arrived; }
    action long_queue() { md.reason = 1; }
    table depths { key = { eg.egress_port : exact; eg.enq_qdepth : range; } actions = { long_queue; NoAction; } const default_action = NoAction(); size = 256; }
    action late() { md.reason = 2; }
    table delays { key = { md.waited : range; } actions = { late; NoAction; } const default_action = NoAction(); size = 16; }
    action sample() { md.reason = 3; }
    table samples { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; md.dice : range; } actions = { sample; NoAction; } const default_action = NoAction(); size = 128; }
    action number() { md.sequence = next.execute(eg.egress_port); }
    action card(MirrorId_t session, bit<32> id) {
        dprsr.mirror_type = 1;
        md.kind = 2;
        md.session = session;
        md.node = id;
        md.ingress_port = (bit<16>)hdr.bridge.ingress_port;
        md.egress_port = (bit<16>)eg.egress_port;
        md.arrived = hdr.bridge.arrived;
        md.left = prsr.global_tstamp[31:0];
        md.depth = (bit<24>)eg.enq_qdepth;
    }
    table collectors { key = { md.reason : exact; } actions = { card; NoAction; } const default_action = NoAction(); size = 4; }
    apply {
        if (hdr.bridge.isValid()) {
            dice();
            waited();
            samples.apply();
            delays.apply();
            depths.apply();
            if (md.reason != 0) {
                number();
                collectors.apply();
            }
            hdr.bridge.setInvalid();
        }
    }
}
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    apply {
        if (dprsr.mirror_type == 1) {
            mirror.emit<card_t>(md.session, { md.kind, md.reason, md.sequence, md.node, md.ingress_port, md.egress_port, md.arrived, md.left, md.queue, md.depth });
        }
        pkt.emit(hdr);
    }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
