// A bridge that floods unknown destinations and reports new sources to the controller by digest.
#include "../ip.p4h"
struct headers_t { ethernet_t ethernet; }
struct learn_t { mac_t mac; port_t port; }
struct meta_t { learn_t learn; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action learn() {
        m.learn.mac = h.ethernet.src;
        m.learn.port = s.ingress_port;
        digest(1, m.learn);
    }
    action forward(port_t port) { s.egress_spec = port; }
    action flood() { s.mcast_grp = 1; }
    table sources { key = { h.ethernet.src : exact; } actions = { learn; NoAction; } default_action = learn; }
    table macs {
        key = { h.ethernet.dst : exact; }
        actions = { forward; flood; }
        default_action = flood;
        support_timeout = true;
    }
    apply { sources.apply(); macs.apply(); }
}

#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { if (s.egress_port == s.ingress_port) { mark_to_drop(s); } }
}
#include "../rest.p4h"
