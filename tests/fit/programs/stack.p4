/* Headers, parsers and deparsers of a common stack. A program may define METADATA, and the macros below. */
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
#ifndef METADATA
#define METADATA bit<8> unused;
#endif
#ifndef MORE_TYPES
#define MORE_TYPES
#endif
#ifndef MORE_FIRST
#define MORE_FIRST
#endif
#ifndef MORE_LAST
#define MORE_LAST
#endif
#ifndef MORE_STATES
#define MORE_STATES
#endif
#ifndef MORE_TYPES_OF_ETHERNET
#define MORE_TYPES_OF_ETHERNET
#endif
#ifndef MORE_PROTOCOLS
#define MORE_PROTOCOLS
#endif
#ifndef MORE_UDP_PORTS
#define MORE_UDP_PORTS
#endif
#ifndef FIRST_STATE
#define FIRST_STATE ethernet
#endif
#ifndef INGRESS_DEPARSER_LOCALS
#define INGRESS_DEPARSER_LOCALS
#endif
#ifndef INGRESS_DEPARSER_FIRST
#define INGRESS_DEPARSER_FIRST
#endif
#ifndef EGRESS_DEPARSER_LOCALS
#define EGRESS_DEPARSER_LOCALS
#endif
#ifndef EGRESS_DEPARSER_FIRST
#define EGRESS_DEPARSER_FIRST
#endif
#ifndef EGRESS_FIRST_STATE
#define EGRESS_FIRST_STATE ethernet
#endif

typedef bit<48> mac_t;
header ethernet_t { mac_t dst; mac_t src; bit<16> type; }
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
header ipv6_t {
    bit<4> version; bit<8> traffic; bit<20> label; bit<16> length; bit<8> next; bit<8> hops;
    bit<128> src; bit<128> dst;
}
header tcp_t {
    bit<16> src; bit<16> dst; bit<32> seq; bit<32> ack; bit<4> offset; bit<4> reserved; bit<8> flags;
    bit<16> window; bit<16> checksum; bit<16> urgent;
}
header udp_t { bit<16> src; bit<16> dst; bit<16> length; bit<16> checksum; }
MORE_TYPES
struct headers_t {
    MORE_FIRST
    ethernet_t eth; vlan_t vlan; ipv4_t ip; ipv6_t ip6; tcp_t tcp; udp_t udp;
    MORE_LAST
}
struct metadata_t { METADATA }

#define STATES \
    state ethernet { \
        pkt.extract(hdr.eth); \
        transition select(hdr.eth.type) { 0x8100 : vlan; 0x0800 : ipv4; 0x86dd : ipv6; MORE_TYPES_OF_ETHERNET default : accept; } \
    } \
    state vlan { \
        pkt.extract(hdr.vlan); \
        transition select(hdr.vlan.type) { 0x0800 : ipv4; 0x86dd : ipv6; MORE_TYPES_OF_ETHERNET default : accept; } \
    } \
    state ipv4 { \
        pkt.extract(hdr.ip); \
        transition select(hdr.ip.protocol) { 6 : tcp; 17 : udp; MORE_PROTOCOLS default : accept; } \
    } \
    state ipv6 { \
        pkt.extract(hdr.ip6); \
        transition select(hdr.ip6.next) { 6 : tcp; 17 : udp; MORE_PROTOCOLS default : accept; } \
    } \
    state tcp { pkt.extract(hdr.tcp); transition accept; } \
    state udp { pkt.extract(hdr.udp); transition select(hdr.udp.dst) { MORE_UDP_PORTS default : accept; } } \
    MORE_STATES

#define INGRESS_ARGS inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig, \
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr, \
    inout ingress_intrinsic_metadata_for_tm_t tm
#define EGRESS_ARGS inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t eg, \
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr, \
    inout egress_intrinsic_metadata_for_output_port_t oport

parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        transition FIRST_STATE;
    }
    STATES
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    INGRESS_DEPARSER_LOCALS
    apply { INGRESS_DEPARSER_FIRST pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
#ifdef EGRESS
    state start { pkt.extract(eg); transition EGRESS_FIRST_STATE; }
    STATES
#else
    state start { pkt.extract(eg); transition accept; }
#endif
}
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    EGRESS_DEPARSER_LOCALS
    apply { EGRESS_DEPARSER_FIRST pkt.emit(hdr); }
}
