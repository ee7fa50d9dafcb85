// A load balancer: services by prefix in an algorithmic table, connections that are known in a table with idle timeouts, others by a
// selector over the 5-tuple; packets go to a server inside another IPv4 header.
#include "architecture.p4"
struct headers_t { ethernet_t eth; ipv4_t outer; ipv4_t ip; tcp_t tcp; }
struct metadata_t { bit<16> service; bit<32> server; bit<16> length; bit<1> chosen; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition select(hdr.ip.protocol) { 6 : tcp; default : accept; } }
    state tcp { pkt.extract(hdr.tcp); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    Alpm(number_partitions = 2048, subtrees_per_partition = 2) algorithm;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    ActionProfile(4096) members;
    ActionSelector(members, hash, SelectorMode_t.RESILIENT, 128, 256) selector;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) by_service;
    action service(bit<16> n) { by_service.count(); md.service = n; }
    action no_service() { by_service.count(); }
    table services { key = { hdr.ip.dst : lpm; } actions = { service; no_service; } default_action = no_service(); size = 32768; implementation = algorithm;
        counters = by_service; }
    action known(bit<32> address) { md.server = address; md.chosen = 1; }
    table connections {
        key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.tcp.src : exact; hdr.tcp.dst : exact; }
        actions = { known; NoAction; }
        const default_action = NoAction();
        idle_timeout = true;
        size = 131072;
    }
    action server(bit<32> address) { md.server = address; }
    table servers {
        key = { md.service : exact; hdr.ip.src : selector; hdr.ip.dst : selector; hdr.tcp.src : selector; hdr.tcp.dst : selector; }
        actions = { server; NoAction; }
        const default_action = NoAction();
        size = 256;
        implementation = selector;
    }
    action learn() { dprsr.digest_type = 1; }
    action longer() { md.length = hdr.ip.length + 20; }
    action inside() {
        hdr.outer.setValid();
        hdr.outer.version = 4;
        hdr.outer.ihl = 5;
        hdr.outer.tos = hdr.ip.tos;
        hdr.outer.length = md.length;
        hdr.outer.id = 0;
        hdr.outer.flags = 2;
        hdr.outer.offset = 0;
        hdr.outer.ttl = 64;
        hdr.outer.protocol = 4;
        hdr.outer.src = hdr.ip.dst;
        hdr.outer.dst = md.server;
    }
    action hop(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; tm.ucast_egress_port = port; }
    table hops { key = { md.server : exact; } actions = { hop; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.tcp.isValid()) {
            services.apply();
            longer();
            if (md.service != 0) {
                connections.apply();
                if (md.chosen == 0) {
                    servers.apply();
                    learn();
                }
                inside();
                hops.apply();
            }
        }
    }
}
struct new_t { bit<32> src; bit<32> dst; bit<16> src_port; bit<16> dst_port; bit<32> server; }
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() sum;
    Digest<new_t>() connections;
    apply {
        if (dprsr.digest_type == 1) { connections.pack({ hdr.ip.src, hdr.ip.dst, hdr.tcp.src, hdr.tcp.dst, md.server }); }
        if (hdr.outer.isValid()) {
            hdr.outer.checksum = sum.update({ hdr.outer.version, hdr.outer.ihl, hdr.outer.tos, hdr.outer.length, hdr.outer.id, hdr.outer.flags,
                hdr.outer.offset, hdr.outer.ttl, hdr.outer.protocol, hdr.outer.src, hdr.outer.dst });
        }
        pkt.emit(hdr);
    }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
