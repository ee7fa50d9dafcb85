// A tunnel header between Ethernet and IP: put on, followed, taken off.
#include "../ip.p4h"
const bit<16> ETHERTYPE_TUNNEL = 0x1212;
header tunnel_t { bit<16> proto; bit<16> dst; }
struct headers_t { ethernet_t ethernet; tunnel_t tunnel; ipv4_t ipv4; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) {
            ETHERTYPE_TUNNEL: tunnel;
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state tunnel {
        p.extract(h.tunnel);
        transition select(h.tunnel.proto) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 { p.extract(h.ipv4); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(16, CounterType.packets) entered;
    counter(16, CounterType.packets) left;
    action drop() { mark_to_drop(s); }
    action enter(bit<16> id) {
        h.tunnel.setValid();
        h.tunnel = { h.ethernet.type, id };
        h.ethernet.type = ETHERTYPE_TUNNEL;
        entered.count((bit<32>)id);
    }
    action follow(port_t port) { s.egress_spec = port; }
    action leave(port_t port) {
        left.count((bit<32>)h.tunnel.dst);
        s.egress_spec = port;
        h.ethernet.type = h.tunnel.proto;
        h.tunnel.setInvalid();
    }
    table wrap { key = { h.ipv4.dst : lpm; } actions = { enter; drop; NoAction; } default_action = NoAction; }
    table tunnels { key = { h.tunnel.dst : exact; } actions = { follow; leave; drop; } default_action = drop; }
    apply {
        if (h.ipv4.isValid() && !h.tunnel.isValid()) { wrap.apply(); }
        if (h.tunnel.isValid()) { tunnels.apply(); } else { drop(); }
    }
}
#include "../rest.p4h"
