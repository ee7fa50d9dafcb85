// 4 registers, each adding one word of the packet.
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<16>>(4096) r0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w0; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w1; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w2; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w3; out_ = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = add0.execute(hdr.ports.src);
        hdr.words.w1 = add1.execute(hdr.ports.src);
        hdr.words.w2 = add2.execute(hdr.ports.src);
        hdr.words.w3 = add3.execute(hdr.ports.src);
        send(1);
    }
}
#include "frame_end.p4"
