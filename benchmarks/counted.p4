// A counter of 1,000,000 cells, a table for 100,000 exact entries, 10,000 routes and an ACL of 500
// ternary entries: what cpu_seconds.py measures.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
    bit<16> vrf;
    bit<16> next_hop;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta,
          inout standard_metadata_t standard_metadata) {
    counter(1000000, CounterType.packets_and_bytes) cells;

    action drop() { mark_to_drop(standard_metadata); }
    action set_vrf(bit<16> vrf) { meta.vrf = vrf; }
    action set_next_hop(bit<16> next_hop) { meta.next_hop = next_hop; }
    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
    }

    table macs {
        key = { hdr.ethernet.dst_addr : exact; }
        actions = { set_vrf; NoAction; }
        default_action = NoAction();
        size = 131072;
    }
    table routes {
        key = { meta.vrf : exact; hdr.ipv4.dst_addr : lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = 16384;
    }
    table next_hops {
        key = { meta.next_hop : exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }
    table acl {
        key = {
            hdr.ipv4.src_addr : ternary;
            hdr.ipv4.dst_addr : ternary;
            hdr.ipv4.protocol : ternary;
        }
        actions = { drop; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        macs.apply();
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
            next_hops.apply();
            acl.apply();
            cells.count((bit<32>) meta.next_hop);
        } else {
            drop();
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta,
          inout standard_metadata_t standard_metadata) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), Verify(), I(), E(), Compute(), D()) main;
