// A layer-4 load balancer: known connections keep their server, new ones are hashed to one of the address's pool.
#define METADATA bit<12> vip; bit<6> version; bit<16> server; bit<1> known; bit<8> port_kind;
#include "frame.p4"
struct learned_t { bit<32> src; bit<32> dst; bit<16> sport; bit<16> dport; bit<16> server; }
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionProfile(4096) servers;
    ActionSelector(servers, spread, SelectorMode_t.FAIR, 64, 256) pools;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) to_vip;
    action is_vip(bit<12> id, bit<6> version) { md.vip = id; md.version = version; to_vip.count(); }
    action no_vip() { to_vip.count(); }
    table vips {
        key = { hdr.ip.dst : exact; hdr.ports.dst : exact; hdr.ip.protocol : exact; }
        actions = { is_vip; no_vip; } const default_action = no_vip(); size = 4096; counters = to_vip;
    }
    action use(bit<16> server) { md.server = server; md.known = 1; }
    table connections {
        key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.ports.src : exact; hdr.ports.dst : exact; hdr.ip.protocol : exact; }
        actions = { use; NoAction; } const default_action = NoAction(); size = 65536; idle_timeout = true;
    }
    action choose(bit<16> server) { md.server = server; dprsr.digest_type = 1; }
    table pool {
        key = { md.vip : exact; md.version : exact; hdr.ip.src : selector; hdr.ports.src : selector; }
        actions = { choose; NoAction; } implementation = pools; size = 4096;
    }
    action rewrite(bit<32> address, bit<16> port) { hdr.ip.dst = address; hdr.ports.dst = port; }
    table servers_of { key = { md.server : exact; } actions = { rewrite; NoAction; } const default_action = NoAction(); size = 16384; }
    action forward(bit<48> mac, PortId_t port) { hdr.eth.dst = mac; tm.ucast_egress_port = port; hdr.ip.ttl = hdr.ip.ttl - 1; }
    action discard() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; discard; } const default_action = discard(); size = 8192; }
    apply {
        if (hdr.ports.isValid()) {
            vips.apply();
            connections.apply();
            if (md.vip != 0) {
                if (md.known == 0) { pool.apply(); }
                servers_of.apply();
            }
        }
        routes.apply();
    }
}
#include "frame_end.p4"
