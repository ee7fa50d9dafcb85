// HyperLogLog: of each packet's hash, the place of the first one, and the largest in the bucket that the hash's other bits choose.
#define METADATA bit<32> hash; bit<8> rank; bit<11> bucket; bit<8> old; bit<12> tenant;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) of_source;
    Hash<bit<11>>(HashAlgorithm_t.CRC16) of_bucket;
    action rank(bit<8> r) { md.rank = r; }
    table first_one { key = { md.hash : ternary; } actions = { rank; } const default_action = rank(33);
        const entries = {
            0x80000000 &&& 0x80000000 : rank(1); 0x40000000 &&& 0xc0000000 : rank(2); 0x20000000 &&& 0xe0000000 : rank(3);
            0x10000000 &&& 0xf0000000 : rank(4); 0x08000000 &&& 0xf8000000 : rank(5); 0x04000000 &&& 0xfc000000 : rank(6);
            0x02000000 &&& 0xfe000000 : rank(7); 0x01000000 &&& 0xff000000 : rank(8); 0x00800000 &&& 0xff800000 : rank(9);
            0x00400000 &&& 0xffc00000 : rank(10); 0x00200000 &&& 0xffe00000 : rank(11); 0x00100000 &&& 0xfff00000 : rank(12); } size = 32; }
    action tenant(bit<12> id) { md.tenant = id; }
    table tenants { key = { hdr.ip.dst : lpm; } actions = { tenant; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<8>, bit<11>>(2048) ranks;
    RegisterAction<bit<8>, bit<11>, bit<8>>(ranks) keep = { void apply(inout bit<8> v, out bit<8> r) { r = v; if (md.rank > v) { v = md.rank; } } };
    Counter<bit<64>, bit<12>>(4096, CounterType_t.PACKETS_AND_BYTES) by_tenant;
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table ports { key = { hdr.eth.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.ip.isValid()) {
            md.hash = of_source.get({ hdr.ip.src });
            md.bucket = of_bucket.get({ hdr.ip.src });
            tenants.apply();
            first_one.apply();
            md.old = keep.execute(md.bucket);
            by_tenant.count(md.tenant);
            if (md.old == 0) { hdr.ip.tos = 4; }
        }
        ports.apply();
    }
}
#include "frame_end.p4"
