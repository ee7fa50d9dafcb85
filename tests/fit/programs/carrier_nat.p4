// A carrier's NAT: sessions of both directions with idle timeouts, misses by digest, and checksums that the deparser updates.
#include "architecture.p4"
struct headers_t { ethernet_t eth; ipv4_t ip; tcp_t tcp; udp_t udp; }
struct metadata_t { bit<16> src_port; bit<16> dst_port; bit<1> tcp_changed; bit<1> udp_changed; bit<1> outside; bit<16> tcp_sum; bit<16> udp_sum; bit<9> port; }
struct miss_t { bit<32> src; bit<32> dst; bit<16> src_port; bit<16> dst_port; bit<8> protocol; bit<9> port; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    Checksum() tcp_sum;
    Checksum() udp_sum;
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        md.tcp_changed = 0;
        md.udp_changed = 0;
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; }
    }
    state ipv4 {
        pkt.extract(hdr.ip);
        tcp_sum.subtract({ hdr.ip.src, hdr.ip.dst });
        udp_sum.subtract({ hdr.ip.src, hdr.ip.dst });
        transition select(hdr.ip.protocol) { 6 : tcp; 17 : udp; default : accept; }
    }
    state tcp {
        pkt.extract(hdr.tcp);
        md.src_port = hdr.tcp.src;
        md.dst_port = hdr.tcp.dst;
        tcp_sum.subtract({ hdr.tcp.checksum });
        tcp_sum.subtract({ hdr.tcp.src, hdr.tcp.dst });
        tcp_sum.subtract_all_and_deposit(md.tcp_sum);
        transition accept;
    }
    state udp {
        pkt.extract(hdr.udp);
        md.src_port = hdr.udp.src;
        md.dst_port = hdr.udp.dst;
        udp_sum.subtract({ hdr.udp.checksum });
        udp_sum.subtract({ hdr.udp.src, hdr.udp.dst });
        udp_sum.subtract_all_and_deposit(md.udp_sum);
        transition accept;
    }
}
control Ingress(INGRESS_ARGS) {
    action outside() { md.outside = 1; }
    table sides { key = { ig.ingress_port : exact; } actions = { outside; NoAction; } const default_action = NoAction(); size = 512; }
    action from_tcp(bit<32> address, bit<16> port) { hdr.ip.src = address; hdr.tcp.src = port; md.tcp_changed = 1; }
    action from_udp(bit<32> address, bit<16> port) { hdr.ip.src = address; hdr.udp.src = port; md.udp_changed = 1; }
    action unknown() { dprsr.digest_type = 1; dprsr.drop_ctl = 1; md.port = ig.ingress_port; }
    table out_sessions {
        key = { hdr.ip.src : exact; hdr.ip.protocol : exact; md.src_port : exact; }
        actions = { from_tcp; from_udp; unknown; }
        const default_action = unknown();
        idle_timeout = true;
        size = 65536;
    }
    action to_tcp(bit<32> address, bit<16> port) { hdr.ip.dst = address; hdr.tcp.dst = port; md.tcp_changed = 1; }
    action to_udp(bit<32> address, bit<16> port) { hdr.ip.dst = address; hdr.udp.dst = port; md.udp_changed = 1; }
    action stranger() { dprsr.drop_ctl = 1; }
    table in_sessions {
        key = { hdr.ip.dst : exact; hdr.ip.protocol : exact; md.dst_port : exact; }
        actions = { to_tcp; to_udp; stranger; }
        const default_action = stranger();
        size = 65536;
    }
    action forward(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; hdr.ip.ttl = hdr.ip.ttl - 1; tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.ip.isValid()) {
            sides.apply();
            if (md.outside == 1) { in_sessions.apply(); } else { out_sessions.apply(); }
            routes.apply();
        }
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() ip_sum;
    Checksum() tcp_sum;
    Checksum() udp_sum;
    Digest<miss_t>() misses;
    apply {
        if (dprsr.digest_type == 1) { misses.pack({ hdr.ip.src, hdr.ip.dst, md.src_port, md.dst_port, hdr.ip.protocol, md.port }); }
        hdr.ip.checksum = ip_sum.update({ hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset,
            hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst });
        if (md.tcp_changed == 1) { hdr.tcp.checksum = tcp_sum.update({ hdr.ip.src, hdr.ip.dst, hdr.tcp.src, hdr.tcp.dst, md.tcp_sum }); }
        if (md.udp_changed == 1) { hdr.udp.checksum = udp_sum.update({ hdr.ip.src, hdr.ip.dst, hdr.udp.src, hdr.udp.dst, md.udp_sum }); }
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
