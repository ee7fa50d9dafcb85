// 6 registers, each adding what the one before gives.
#define METADATA bit<32> s0; bit<32> s1; bit<32> s2; bit<32> s3; bit<32> s4; bit<32> s5;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<16>>(1024) r0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> o) { v = v + hdr.words.w0; o = v; } };
    Register<bit<32>, bit<16>>(1024) r1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.s0; o = v; } };
    Register<bit<32>, bit<16>>(1024) r2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.s1; o = v; } };
    Register<bit<32>, bit<16>>(1024) r3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.s2; o = v; } };
    Register<bit<32>, bit<16>>(1024) r4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r4) add4 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.s3; o = v; } };
    Register<bit<32>, bit<16>>(1024) r5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r5) add5 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.s4; o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.s0 = add0.execute(hdr.ports.src);
        md.s1 = add1.execute(hdr.ports.src);
        md.s2 = add2.execute(hdr.ports.src);
        md.s3 = add3.execute(hdr.ports.src);
        md.s4 = add4.execute(hdr.ports.src);
        md.s5 = add5.execute(hdr.ports.src);
        hdr.words.w0 = md.s5;
        send(1);
    }
}
#include "frame_end.p4"
