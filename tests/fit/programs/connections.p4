// A load balancer: 262,144 connections, and a pool for new ones.
#define METADATA bit<12> server; bit<6> pool; bit<8> bucket;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
    action to_server(bit<32> address, PortId_t port) { hdr.ip.dst = address; tm.ucast_egress_port = port; }
    action known(bit<12> server) { md.server = server; }
    table connections { key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.tcp.src : exact; hdr.tcp.dst : exact; hdr.ip.protocol : exact; } actions = { known; NoAction; } const default_action = NoAction(); size = 262144; }
    action choose(bit<12> first) { md.server = first; }
    action pool(bit<6> id) { md.pool = id; }
    table services { key = { hdr.ip.dst : exact; hdr.tcp.dst : exact; } actions = { pool; drop; } const default_action = drop(); size = 1024; }
    table pools { key = { md.pool : exact; md.bucket : exact; } actions = { choose; drop; } const default_action = drop(); size = 16384; }
    table servers { key = { md.server : exact; } actions = { to_server; drop; } const default_action = drop(); size = 4096; }
    apply {
        if (hdr.tcp.isValid()) {
            if (services.apply().hit) {
                md.bucket = (bit<8>) hash.get({ hdr.ip.src, hdr.tcp.src });
                if (!connections.apply().hit) { pools.apply(); dprsr.digest_type = 1; }
                servers.apply();
            }
        }
    }
}
#include "stack_end.p4"
