// The sender lists the ports; each switch takes the first, the last one restores the type.
#include "../ip.p4h"
const bit<16> ETHERTYPE_ROUTE = 0x1234;
#define MAX_HOPS 9

header hop_t { bit<1> bos; bit<15> port; }
struct headers_t { ethernet_t ethernet; hop_t[MAX_HOPS] hops; ipv4_t ipv4; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_ROUTE: hop; default: accept; }
    }
    state hop { p.extract(h.hops.next); transition select(h.hops.last.bos) { 1: ipv4; default: hop; } }
    state ipv4 { p.extract(h.ipv4); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (!h.hops[0].isValid() || s.parser_error != error.NoError) { mark_to_drop(s); return; }
        s.egress_spec = (port_t)h.hops[0].port;
        if (h.hops[0].bos == 1) { h.ethernet.type = ETHERTYPE_IPV4; }
        h.hops.pop_front(1);
        if (h.ipv4.isValid()) { h.ipv4.ttl = h.ipv4.ttl - 1; }
    }
}
#include "../rest.p4h"
