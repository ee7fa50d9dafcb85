// Probes that follow a source route and collect each switch's byte counts and times.
#include "../ip.p4h"
const bit<16> ETHERTYPE_PROBE = 0x0812;
#define MAX_HOPS 5
header probe_t { bit<8> hops; }
header data_t { bit<1> bos; bit<7> id; bit<8> port; bit<32> bytes; }
header fwd_t { bit<8> port; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; probe_t probe; data_t[MAX_HOPS] data; fwd_t[MAX_HOPS] fwd; }
struct meta_t { bit<8> out_port; bit<8> left; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; ETHERTYPE_PROBE: probe; default: accept; }
    }
    state ipv4 { p.extract(h.ipv4); transition accept; }
    state probe {
        p.extract(h.probe);
        m.left = h.probe.hops + 1;
        transition select(h.probe.hops) { 0: fwd; default: data; }
    }
    state data { p.extract(h.data.next); transition select(h.data.last.bos) { 1: fwd; default: data; } }
    state fwd {
        p.extract(h.fwd.next);
        m.left = m.left - 1;
        m.out_port = h.fwd.last.port;
        transition select(m.left) { 0: accept; default: fwd; }
    }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action forward(port_t port) { s.egress_spec = port; h.ipv4.ttl = h.ipv4.ttl |-| 1; }
    table routes { key = { h.ipv4.dst : lpm; } actions = { forward; } }
    apply {
        if (h.ipv4.isValid()) { routes.apply(); }
        else if (h.probe.isValid()) {
            s.egress_spec = (port_t)m.out_port;
            h.probe.hops = h.probe.hops + 1;
        }
    }
}

#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(8) bytes;
    action id(bit<7> swid) { h.data[0].id = swid; }
    table swid { actions = { id; } }
    apply {
        bit<32> count;
        bytes.read(count, (bit<32>)s.egress_port);
        count = count + s.packet_length;
        bytes.write((bit<32>)s.egress_port, h.probe.isValid() ? 32w0 : count);
        if (h.probe.isValid()) {
            h.data.push_front(1);
            h.data[0].setValid();
            if (h.probe.hops == 1) { h.data[0].bos = 1; } else { h.data[0].bos = 0; }
            swid.apply();
            h.data[0].port = (bit<8>)s.egress_port;
            h.data[0].bytes = count;
        }
    }
}
#include "../rest.p4h"
