// Equal-cost paths: a hash of the flow chooses a next hop of the group.
#include "../ip.p4h"

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<14> choice; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { p.extract(h.ipv4); transition select(h.ipv4.protocol) { 6: tcp; default: accept; } }
    state tcp { p.extract(h.tcp); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action choose(bit<16> base, bit<32> count) {
        hash(m.choice, HashAlgorithm.crc16, base,
             { h.ipv4.src, h.ipv4.dst, h.ipv4.protocol, h.tcp.sport, h.tcp.dport }, count);
    }
    action hop(mac_t mac, ip4_t address, port_t port) {
        h.ethernet.dst = mac;
        h.ipv4.dst = address;
        s.egress_spec = port;
        h.ipv4.ttl = h.ipv4.ttl - 1;
    }
    table group { key = { h.ipv4.dst : lpm; } actions = { drop; choose; } }
    table hops { key = { m.choice : exact; } actions = { drop; hop; } size = 4; }
    apply { if (h.ipv4.isValid() && h.ipv4.ttl > 0) { group.apply(); hops.apply(); } }
}

#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action rewrite(mac_t mac) { h.ethernet.src = mac; }
    table frame { key = { s.egress_port : exact; } actions = { rewrite; } }
    apply { frame.apply(); }
}

#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply { update_checksum(h.ipv4.isValid(), IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16); }
}
#include "../rest.p4h"
