// An access list over the five-tuple with ranges of ports, counted and metered by rule.
#include "../ip.p4h"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
struct meta_t { bit<16> sport; bit<16> dport; bit<2> colour; bool bridged; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(h.ipv4);
        transition select(h.ipv4.frag, h.ipv4.ihl, h.ipv4.protocol) {
            (0, 5, 6): tcp;
            (0, 5, 17): udp;
            default: accept;
        }
    }
    state tcp { p.extract(h.tcp); m.sport = h.tcp.sport; m.dport = h.tcp.dport; transition accept; }
    state udp { p.extract(h.udp); m.sport = h.udp.sport; m.dport = h.udp.dport; transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) rule_hits;
    direct_meter<bit<2>>(MeterType.bytes) rule_rate;
    action permit() { rule_hits.count(); rule_rate.read(m.colour); }
    action deny() { rule_hits.count(); mark_to_drop(s); exit; }
    action punt(port_t cpu) { rule_hits.count(); s.egress_spec = cpu; exit; }
    action bridge(port_t port) { s.egress_spec = port; m.bridged = true; }
    table rules {
        key = {
            h.ipv4.src : ternary; h.ipv4.dst : ternary; h.ipv4.protocol : ternary;
            m.dport : range; h.tcp.isValid() : ternary;
        }
        actions = { permit; deny; punt; }
        counters = rule_hits;
        meters = rule_rate;
        const default_action = deny();
    }
    table macs { key = { h.ethernet.dst : exact; } actions = { bridge; deny; } default_action = deny; }
    apply { if (h.ipv4.isValid()) { rules.apply(); } macs.apply(); if (m.colour == 2) { mark_to_drop(s); } }
}
#include "../rest.p4h"
