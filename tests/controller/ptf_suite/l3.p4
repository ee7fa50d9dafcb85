// A router with one of each thing a P4Runtime controller can work on.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU = 510;

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> pad; }
@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> pad; }
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; ipv4_t ipv4; }
struct learned_t { bit<48> address; bit<9> port; }
struct metadata_t { bit<9> ingress_port; }

parser Prs(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition select(sm.ingress_port) { CPU: from_cpu; default: ethernet; } }
    state from_cpu { packet.extract(hdr.packet_out); transition ethernet; }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}

control Unchecked(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Ing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) last_port;
    counter(16, CounterType.packets) sent;
    direct_counter(CounterType.packets_and_bytes) matched;
    action_selector(HashAlgorithm.crc16, 64, 14) links;

    action drop() { mark_to_drop(sm); }
    action to_cpu() { sm.egress_spec = CPU; }
    action forward(bit<9> port) { sm.egress_spec = port; sent.count((bit<32>) port); }
    action replicate(bit<16> group) { sm.mcast_grp = group; }
    action learn() { digest<learned_t>(1, { hdr.ethernet.src, sm.ingress_port }); }

    table known {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; @defaultonly learn; }
        const default_action = learn();
        support_timeout = true;
    }
    table acl {
        key = { sm.ingress_port: ternary; hdr.ipv4.src: ternary @name("source"); }
        actions = { drop; NoAction; }
        counters = matched;
        size = 4;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; replicate; to_cpu; drop; }
        default_action = drop();
    }
    table balance {
        key = { hdr.ethernet.dst: exact; hdr.ethernet.src: selector; }
        actions = { forward; }
        implementation = links;
    }

    apply {
        meta.ingress_port = sm.ingress_port;
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        last_port.write(0, (bit<32>) sm.ingress_port);
        known.apply();
        if (hdr.ipv4.isValid()) {
            acl.apply();
            if (sm.egress_spec != 511) { routes.apply(); }
        } else {
            balance.apply();
        }
    }
}

control Egr(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == CPU) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.ingress_port;
        }
    }
}

control Dep(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(Prs(), Unchecked(), Ing(), Egr(), Unchecked(), Dep()) main;
