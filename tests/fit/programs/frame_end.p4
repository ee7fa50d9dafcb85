parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; }
    }
    state ipv4 {
        pkt.extract(hdr.ip);
        transition select(hdr.ip.protocol) { 17 : ports; default : accept; }
    }
    state ports {
        pkt.extract(hdr.ports);
        transition select(hdr.ports.dst) { 18256 : words; default : accept; }
    }
    state words { pkt.extract(hdr.words); transition accept; }
}

control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg);
#ifdef EGRESS
        transition ethernet; }
    state ethernet { pkt.extract(hdr.eth); transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition accept; }
#else
        transition accept; }
#endif
}
#ifndef EGRESS
control Egress(EGRESS_ARGS) { apply { } }
#endif
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
