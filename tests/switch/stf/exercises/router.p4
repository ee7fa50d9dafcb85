// An IPv4 router: longest prefix, MAC rewriting, TTL, checksum.
#include "../ip.p4h"

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { p.extract(h.ipv4); transition accept; }
}

#define HAS_VERIFY
control V(inout headers_t h, inout meta_t m) {
    apply { verify_checksum(h.ipv4.isValid(), IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16); }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(512, CounterType.packets_and_bytes) sent;
    action drop() { mark_to_drop(s); }
    action forward(mac_t mac, port_t port) {
        s.egress_spec = port;
        h.ethernet.src = h.ethernet.dst;
        h.ethernet.dst = mac;
        h.ipv4.ttl = h.ipv4.ttl - 1;
        sent.count((bit<32>)port);
    }
    table routes {
        key = { h.ipv4.dst : lpm; }
        actions = { forward; drop; NoAction; }
        size = 1024;
        default_action = drop();
    }
    apply {
        if (h.ipv4.isValid() && h.ipv4.ttl > 1 && s.checksum_error == 0) { routes.apply(); }
        else { drop(); }
    }
}

#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply { update_checksum(h.ipv4.isValid(), IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16); }
}
#include "../rest.p4h"
