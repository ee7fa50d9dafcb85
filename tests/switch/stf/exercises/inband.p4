// In-band telemetry in an IP option: each switch puts its number and queue depth in front.
#include "../ip.p4h"
#define MAX_HOPS 4

header option_t { bit<1> copied; bit<2> class; bit<5> number; bit<8> length; }
header count_t { bit<16> count; }
header trace_t { bit<32> switch_id; bit<32> depth; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; option_t option; count_t mri; trace_t[MAX_HOPS] traces; }
struct parsing_t { bit<16> left; }
struct meta_t { bit<16> seen; parsing_t parsing; }
error { NoOption }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(h.ipv4);
        verify(h.ipv4.ihl >= 5, error.NoOption);
        transition select(h.ipv4.ihl) { 5: accept; default: option; }
    }
    state option { p.extract(h.option); transition select(h.option.number) { 31: mri; default: accept; } }
    state mri {
        p.extract(h.mri);
        m.parsing.left = h.mri.count;
        transition select(m.parsing.left) { 0: accept; default: trace; }
    }
    state trace {
        p.extract(h.traces.next);
        m.parsing.left = m.parsing.left - 1;
        transition select(m.parsing.left) { 0: accept; default: trace; }
    }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action forward(port_t port) { s.egress_spec = port; h.ipv4.ttl = h.ipv4.ttl - 1; }
    action drop() { mark_to_drop(s); }
    table routes { key = { h.ipv4.dst : lpm; } actions = { forward; drop; } default_action = drop; }
    apply { if (h.ipv4.isValid()) { routes.apply(); } }
}

#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action add(bit<32> id) {
        h.mri.count = h.mri.count + 1;
        h.traces.push_front(1);
        h.traces[0].setValid();
        h.traces[0].switch_id = id;
        h.traces[0].depth = (bit<32>)s.deq_qdepth;
        h.ipv4.ihl = h.ipv4.ihl + 2;
        h.option.length = h.option.length + 8;
        h.ipv4.total_len = h.ipv4.total_len + 8;
    }
    table trace { actions = { add; NoAction; } default_action = NoAction(); }
    apply { if (h.mri.isValid()) { trace.apply(); } }
}

#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply { update_checksum(h.ipv4.isValid(), IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16); }
}
#include "../rest.p4h"
