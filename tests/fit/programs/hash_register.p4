// A sketch: four hashes choose the cells of four registers.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Hash<bit<12>>(HashAlgorithm_t.CRC8) h0;
    Register<bit<32>, bit<12>>(4096) r0;
    RegisterAction<bit<32>, bit<12>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
    Hash<bit<12>>(HashAlgorithm_t.CRC16) h1;
    Register<bit<32>, bit<12>>(4096) r1;
    RegisterAction<bit<32>, bit<12>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
    Hash<bit<12>>(HashAlgorithm_t.CRC32) h2;
    Register<bit<32>, bit<12>>(4096) r2;
    RegisterAction<bit<32>, bit<12>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
    Hash<bit<12>>(HashAlgorithm_t.RANDOM) h3;
    Register<bit<32>, bit<12>>(4096) r3;
    RegisterAction<bit<32>, bit<12>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = add0.execute(h0.get({hdr.ip.src, hdr.ip.dst}));
        hdr.words.w1 = add1.execute(h1.get({hdr.ip.src, hdr.ip.dst}));
        hdr.words.w2 = add2.execute(h2.get({hdr.ip.src, hdr.ip.dst}));
        hdr.words.w3 = add3.execute(h3.get({hdr.ip.src, hdr.ip.dst}));
        send(1);
    }
}
#include "frame_end.p4"
