// The program of the attacked switch: a table that clients write, a counter that takes long to read.
#include <core.p4>
#include <tna.p4>

header h_t { bit<32> key; bit<32> cell; }
struct headers_t { h_t h; }
struct metadata_t {}

parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
        out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(h.h); transition accept; }
}

control Ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr,
        inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<20>>(1000000, CounterType_t.PACKETS_AND_BYTES) cells;

    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table written {
        key = { h.h.key : exact; }
        actions = { forward; NoAction; }
        const default_action = NoAction;
        size = 65536;
    }
    apply { cells.count((bit<20>) h.h.cell); written.apply(); }
}

control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(h); }
}

parser EgressParser(packet_in pkt, out headers_t h, out metadata_t m,
        out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}

control Egress(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr,
        inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {}
}

control EgressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
        in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {}
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
    EgressDeparser()) pipe;
Switch(pipe) main;
