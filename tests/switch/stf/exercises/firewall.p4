// Connections start from the inside only: a Bloom filter of two registers remembers them.
#include "../ip.p4h"
#define CELLS 4096

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<32> one; bit<32> two; }

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
    register<bit<1>>(CELLS) filter_1;
    register<bit<1>>(CELLS) filter_2;
    bit<1> direction;

    action drop() { mark_to_drop(s); }
    action hashes(ip4_t a, ip4_t b, bit<16> x, bit<16> y) {
        hash(m.one, HashAlgorithm.crc16, (bit<32>)0, { a, b, h.ipv4.protocol, x, y }, (bit<32>)CELLS);
        hash(m.two, HashAlgorithm.crc32, (bit<32>)0, { a, b, h.ipv4.protocol, x, y }, (bit<32>)CELLS);
    }
    action forward(port_t port) { s.egress_spec = port; }
    action set_direction(bit<1> dir) { direction = dir; }
    table routes { key = { h.ipv4.dst : lpm; } actions = { forward; drop; } default_action = drop; }
    table ports {
        key = { s.ingress_port : exact; s.egress_spec : exact; }
        actions = { set_direction; NoAction; }
        default_action = NoAction;
    }
    apply {
        if (!h.ipv4.isValid()) { drop(); return; }
        routes.apply();
        if (!h.tcp.isValid()) { return; }
        direction = 0;
        if (ports.apply().hit) {
            if (direction == 0) {
                hashes(h.ipv4.src, h.ipv4.dst, h.tcp.sport, h.tcp.dport);
                if (h.tcp.ctrl[1:1] == 1) { filter_1.write(m.one, 1); filter_2.write(m.two, 1); }
            } else {
                hashes(h.ipv4.dst, h.ipv4.src, h.tcp.dport, h.tcp.sport);
                bit<1> a;
                bit<1> b;
                filter_1.read(a, m.one);
                filter_2.read(b, m.two);
                if (a != 1 || b != 1) { drop(); }
            }
        }
    }
}
#include "../rest.p4h"
