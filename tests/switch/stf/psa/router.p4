// An IPv4 router: checksum verified in the parser, longest prefix matched with a direct counter,
// the neighbour by its next hop, the source address by the port in egress, checksum updated.
#define HAS_META
#define NORMAL_T empty_t
#include "first.p4h"
error { BadHeader, BadChecksum }
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<32> next_hop; }

#define WITHOUT_CHECKSUM(ip) { ip.version, ip.ihl, ip.tos, ip.total_len, ip.id, ip.flags, ip.frag, \
                               ip.ttl, ip.protocol, ip.src, ip.dst }

#define HAS_INGRESS_PARSER
INGRESS_PARSER(IngressParserImpl) {
    InternetChecksum() ck;
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(h.ipv4);
        verify(h.ipv4.ihl == 5, error.BadHeader);
        ck.add(WITHOUT_CHECKSUM(h.ipv4));
        verify(ck.get() == h.ipv4.checksum, error.BadChecksum);
        transition accept;
    }
}

#define HAS_INGRESS
INGRESS(ingress) {
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) per_prefix;
    Counter<bit<32>, bit<8>>(8, PSA_CounterType_t.PACKETS) bad;
    action via(bit<32> next_hop, PortId_t port) {
        per_prefix.count();
        m.next_hop = next_hop;
        send_to_port(o, port);
    }
    action discard() { per_prefix.count(); ingress_drop(o); }
    table routes {
        key = { h.ipv4.dst : lpm; }
        actions = { via; discard; }
        default_action = discard();
        psa_direct_counter = per_prefix;
        size = 64;
    }
    action to(bit<48> mac) { h.ethernet.dst = mac; }
    action unknown() { ingress_drop(o); }
    table neighbours {
        key = { m.next_hop : exact; }
        actions = { to; unknown; }
        default_action = unknown();
    }
    apply {
        if (s.parser_error != error.NoError) {
            bad.count(s.parser_error == error.BadChecksum ? 8w1 : 0);
        } else if (h.ipv4.isValid() && h.ipv4.ttl > 1) {
            h.ipv4.ttl = h.ipv4.ttl - 1;
            if (routes.apply().hit) { neighbours.apply(); }
        }
    }
}

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { p.extract(h.ipv4); transition accept; }
}

#define HAS_EGRESS
EGRESS(egress) {
    action from_mac(bit<48> mac) { h.ethernet.src = mac; }
    table ports {
        key = { s.egress_port : exact; }
        actions = { from_mac; NoAction; }
    }
    apply { ports.apply(); }
}

#define HAS_EGRESS_DEPARSER
EGRESS_DEPARSER(EgressDeparserImpl) {
    InternetChecksum() ck;
    apply {
        ck.add(WITHOUT_CHECKSUM(h.ipv4));
        h.ipv4.checksum = ck.get();
        p.emit(h);
    }
}
#include "rest.p4h"
