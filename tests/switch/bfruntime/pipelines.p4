// Two pipelines with different parsers, headers and controls. pipeA counts packets, and egress of
// pipeB puts a tag in front of those that cross over to it, which its ingress reads.

#include <core.p4>
#if CHIP == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

header tag_t { bit<8> tag; bit<8> port; }
header number_t { bit<8> kind; bit<8> value; bit<16> count; }
header word_t { bit<32> word; }
struct numbers_t { number_t number; }
struct words_t { tag_t tag; word_t word; }
struct a_t { bit<8> unused; }
struct b_t { bit<16> unused; bit<1> more; }

parser AIngressParser(packet_in pkt, out numbers_t hdr, out a_t md,
                      out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        pkt.extract(intrinsic);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.number);
        transition accept;
    }
}

control Ingress(inout numbers_t hdr, inout a_t md, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    action send(PortId_t port) { for_tm.ucast_egress_port = port; }
    action drop() { for_deparser.drop_ctl = 1; }
    table t {
        key = { hdr.number.kind : exact; }
        actions = { send; drop; }
        const default_action = drop;
        size = 64;
    }
    Register<bit<16>, bit<1>>(1) seen;
    RegisterAction<bit<16>, bit<1>, bit<16>>(seen) count = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    apply {
        t.apply();
        hdr.number.count = count.execute(0);
    }
}

control AIngressDeparser(packet_out pkt, inout numbers_t hdr, in a_t md) { apply { pkt.emit(hdr); } }

parser AEgressParser(packet_in pkt, out numbers_t hdr, out a_t md,
                     out egress_intrinsic_metadata_t intrinsic) {
    state start { pkt.extract(intrinsic); pkt.extract(hdr.number); transition accept; }
}

control AEgress(inout numbers_t hdr, inout a_t md, in egress_intrinsic_metadata_t intrinsic) {
    apply { hdr.number.value = hdr.number.value + 1; }
}

control AEgressDeparser(packet_out pkt, inout numbers_t hdr, in a_t md) { apply { pkt.emit(hdr); } }

parser BIngressParser(packet_in pkt, out words_t hdr, out b_t md,
                      out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        pkt.extract(intrinsic);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.tag);
        pkt.extract(hdr.word);
        transition accept;
    }
}

control BIngress(inout words_t hdr, inout b_t md, in ingress_intrinsic_metadata_t intrinsic,
                 in ingress_intrinsic_metadata_from_parser_t from_parser,
                 inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                 inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    action send(PortId_t port) { for_tm.ucast_egress_port = port; }
    table t {
        key = { hdr.tag.tag : exact; hdr.word.word : ternary; }
        actions = { send; NoAction; }
        size = 64;
    }
    Register<bit<8>, bit<1>>(1) ports;
    RegisterAction<bit<8>, bit<1>, bit<8>>(ports) note = {
        void apply(inout bit<8> value) { value = hdr.tag.port; }
    };
    apply {
        t.apply();
        note.execute(0);
        hdr.tag.setInvalid();
    }
}

control BIngressDeparser(packet_out pkt, inout words_t hdr, in b_t md) { apply { pkt.emit(hdr); } }

parser BEgressParser(packet_in pkt, out words_t hdr, out b_t md,
                     out egress_intrinsic_metadata_t intrinsic) {
    state start { pkt.extract(intrinsic); transition accept; }
}

control BEgress(inout words_t hdr, inout b_t md, in egress_intrinsic_metadata_t intrinsic) {
    apply {
        hdr.tag.setValid();
        hdr.tag.tag = 0xBB;
        hdr.tag.port = (bit<8>)intrinsic.egress_port;
    }
}

control BEgressDeparser(packet_out pkt, inout words_t hdr, in b_t md) { apply { pkt.emit(hdr); } }

Pipeline(AIngressParser(), Ingress(), AIngressDeparser(),
         AEgressParser(), AEgress(), AEgressDeparser()) pipeA;
Pipeline(BIngressParser(), BIngress(), BIngressDeparser(),
         BEgressParser(), BEgress(), BEgressDeparser()) pipeB;
Switch(pipeA, pipeB) main;
