// 16 registers, each adding one word of the packet.
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15;
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
    Register<bit<32>, bit<16>>(4096) r4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r4) add4 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w4; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r5) add5 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w5; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r6;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r6) add6 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w6; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r7;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r7) add7 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w7; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r8;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r8) add8 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w8; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r9;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r9) add9 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w9; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r10;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r10) add10 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w10; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r11;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r11) add11 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w11; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r12;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r12) add12 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w12; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r13;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r13) add13 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w13; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r14;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r14) add14 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w14; out_ = v; } };
    Register<bit<32>, bit<16>>(4096) r15;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r15) add15 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w15; out_ = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = add0.execute(hdr.ports.src);
        hdr.words.w1 = add1.execute(hdr.ports.src);
        hdr.words.w2 = add2.execute(hdr.ports.src);
        hdr.words.w3 = add3.execute(hdr.ports.src);
        hdr.words.w4 = add4.execute(hdr.ports.src);
        hdr.words.w5 = add5.execute(hdr.ports.src);
        hdr.words.w6 = add6.execute(hdr.ports.src);
        hdr.words.w7 = add7.execute(hdr.ports.src);
        hdr.words.w8 = add8.execute(hdr.ports.src);
        hdr.words.w9 = add9.execute(hdr.ports.src);
        hdr.words.w10 = add10.execute(hdr.ports.src);
        hdr.words.w11 = add11.execute(hdr.ports.src);
        hdr.words.w12 = add12.execute(hdr.ports.src);
        hdr.words.w13 = add13.execute(hdr.ports.src);
        hdr.words.w14 = add14.execute(hdr.ports.src);
        hdr.words.w15 = add15.execute(hdr.ports.src);
        send(1);
    }
}
#include "frame_end.p4"
