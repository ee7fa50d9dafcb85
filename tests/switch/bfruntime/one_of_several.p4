// A program for some of a chip's pipes: a table, a register, a digest and idle entries. ADD tells
// two of them apart: ingress sets it as a packet's value, and egress adds it.

#include <core.p4>
#include <tna.p4>

header number_t { bit<8> kind; bit<8> value; }
struct headers_t { number_t number; }
struct metadata_t { bit<8> unused; }
struct kind_t { bit<8> kind; bit<8> value; }

parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md,
                     out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        pkt.extract(intrinsic);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.number);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    action send(PortId_t port) { for_tm.ucast_egress_port = port; hdr.number.value = ADD; }
    action report(PortId_t port) { for_tm.ucast_egress_port = port; for_deparser.digest_type = 1; }
    action drop() { for_deparser.drop_ctl = 1; }
    table t {
        key = { hdr.number.kind : exact; }
        actions = { send; report; drop; }
        const default_action = drop;
        size = 64;
        idle_timeout = true;
    }
#if ADD > 1
    table more {
        key = { hdr.number.value : exact; }
        actions = { drop; NoAction; }
        default_action = NoAction;
    }
#endif
    Register<bit<16>, bit<1>>(1) seen;
    RegisterAction<bit<16>, bit<1>, bit<16>>(seen) count = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    apply {
        count.execute(0);
        t.apply();
#if ADD > 1
        more.apply();
#endif
    }
}

control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<kind_t>() kinds;
    apply {
        if (for_deparser.digest_type == 1) { kinds.pack({hdr.number.kind, ADD}); }
        pkt.emit(hdr);
    }
}

parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md,
                    out egress_intrinsic_metadata_t intrinsic) {
    state start { pkt.extract(intrinsic); pkt.extract(hdr.number); transition accept; }
}

control Egress(inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { hdr.number.value = hdr.number.value + ADD; }
}

control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { pkt.emit(hdr); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser())
    pipe;
Switch(pipe) main;
