// Source NAT of TCP, with the TCP checksum over the payload computed anew; unknown flows go to the
// CPU port inside a header of their own.
#include "../ip.p4h"
#define CPU_PORT 64
header cpu_t { bit<64> preamble; bit<8> device; bit<8> reason; bit<8> port; }
struct headers_t { cpu_t cpu; ethernet_t ethernet; ipv4_t ipv4; tcp_t tcp; }
struct meta_t { bit<1> outside; @field_list(1) bit<16> tcp_length; bool done; @field_list(1) port_t from; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        transition select(p.lookahead<bit<64>>()) { 0: cpu; default: ethernet; }
    }
    state cpu { p.extract(h.cpu); transition ethernet; }
    state ethernet {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        p.extract(h.ipv4);
        m.tcp_length = h.ipv4.total_len - 20;
        transition select(h.ipv4.protocol) { 6: tcp; default: accept; }
    }
    state tcp { p.extract(h.tcp); transition accept; }
}

#define TCP_FIELDS { h.ipv4.src, h.ipv4.dst, 8w0, h.ipv4.protocol, m.tcp_length, h.tcp.sport, h.tcp.dport, \
                     h.tcp.seq, h.tcp.ack, h.tcp.offset, h.tcp.res, h.tcp.ecn, h.tcp.ctrl, h.tcp.window, h.tcp.urgent }
#define HAS_VERIFY
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(true, IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(h.tcp.isValid(), TCP_FIELDS, h.tcp.checksum, HashAlgorithm.csum16);
    }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action side(bit<1> outside) { m.outside = outside; }
    action out_rewrite(ip4_t src, bit<16> sport) { h.ipv4.src = src; h.tcp.sport = sport; m.done = true; }
    action in_rewrite(ip4_t dst, bit<16> dport) { h.ipv4.dst = dst; h.tcp.dport = dport; m.done = true; }
    action to_cpu() { m.from = s.ingress_port; clone_preserving_field_list(CloneType.I2E, 250, 1); }
    action forward(port_t port) { s.egress_spec = port; h.ipv4.ttl = h.ipv4.ttl - 1; }
    table sides { key = { s.ingress_port : exact; } actions = { side; drop; } default_action = drop; }
    table nat {
        key = {
            m.outside : exact;
            h.ipv4.src : ternary; h.ipv4.dst : ternary; h.tcp.sport : ternary; h.tcp.dport : ternary;
        }
        actions = { out_rewrite; in_rewrite; to_cpu; drop; }
        default_action = drop;
    }
    table routes { key = { h.ipv4.dst : lpm; } actions = { forward; drop; } default_action = drop; }
    apply {
        if (s.checksum_error == 1) { drop(); exit; }
        sides.apply();
        switch (nat.apply().action_run) {
            to_cpu: { drop(); }
            out_rewrite: { routes.apply(); }
            in_rewrite: { routes.apply(); }
        }
    }
}

#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (s.instance_type == 1) { h.cpu.setValid(); h.cpu = { 0, 0, 0xab, (bit<8>)m.from }; }
    }
}

#define HAS_COMPUTE
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(true, IPV4_FIELDS(h.ipv4), h.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(h.tcp.isValid(), TCP_FIELDS, h.tcp.checksum, HashAlgorithm.csum16);
    }
}
#include "../rest.p4h"
