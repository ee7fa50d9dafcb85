/* The architecture, and the parameters of the controls, for programs with parsers of their own. */
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
#define INGRESS_ARGS inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig, \
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr, \
    inout ingress_intrinsic_metadata_for_tm_t tm
#define EGRESS_ARGS inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg, \
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr, \
    inout egress_intrinsic_metadata_for_output_port_t oport
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header ipv6_t {
    bit<4> version; bit<8> tos; bit<20> flow; bit<16> length; bit<8> next; bit<8> hops; bit<128> src; bit<128> dst;
}
header ports_t { bit<16> src; bit<16> dst; }
header tcp_t {
    bit<16> src; bit<16> dst; bit<32> seq; bit<32> ack; bit<4> offset; bit<4> reserved; bit<8> flags; bit<16> window; bit<16> checksum;
    bit<16> urgent;
}
header udp_t { bit<16> src; bit<16> dst; bit<16> length; bit<16> checksum; }
