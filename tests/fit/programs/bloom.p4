// A Bloom filter of three one-bit registers; packets that are new are copied.
#define METADATA bit<1> seen0; bit<1> seen1; bit<1> seen2;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h0;
    Register<bit<1>, bit<16>>(65536) bits0;
    RegisterAction<bit<1>, bit<16>, bit<1>>(bits0) test0 = { void apply(inout bit<1> v, out bit<1> o) { o = v; v = 1; } };
    Hash<bit<16>>(HashAlgorithm_t.CRC32) h1;
    Register<bit<1>, bit<16>>(65536) bits1;
    RegisterAction<bit<1>, bit<16>, bit<1>>(bits1) test1 = { void apply(inout bit<1> v, out bit<1> o) { o = v; v = 1; } };
    Hash<bit<16>>(HashAlgorithm_t.RANDOM) h2;
    Register<bit<1>, bit<16>>(65536) bits2;
    RegisterAction<bit<1>, bit<16>, bit<1>>(bits2) test2 = { void apply(inout bit<1> v, out bit<1> o) { o = v; v = 1; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.seen0 = test0.execute(h0.get({hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst}));
        md.seen1 = test1.execute(h1.get({hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst}));
        md.seen2 = test2.execute(h2.get({hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst}));
        if (md.seen0 == 0 || md.seen1 == 0 || md.seen2 == 0) { tm.mcast_grp_a = 1; }
        send(1);
    }
}
#include "frame_end.p4"
