/* The common part of the programs: headers, parsers, and an empty egress. A program defines METADATA, and
   the control Ingress, and includes frame_end.p4; it may define its own EGRESS. */
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
#ifndef METADATA
#define METADATA bit<8> none;
#endif
#ifndef WORDS
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7;
#endif

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; }
header words_t { WORDS }
struct headers_t { ethernet_t eth; ipv4_t ip; ports_t ports; words_t words; }
struct metadata_t { METADATA }

#define INGRESS_ARGS inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig, \
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr, \
    inout ingress_intrinsic_metadata_for_tm_t tm
#define EGRESS_ARGS inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg, \
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr, \
    inout egress_intrinsic_metadata_for_output_port_t oport
