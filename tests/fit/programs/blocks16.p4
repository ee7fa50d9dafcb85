// Sixteen lookups of 4 bits and registers that add what they give: one pass of a compressed aggregator.
#define METADATA bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7; bit<32> v8; bit<32> v9; bit<32> v10; bit<32> v11; bit<32> v12; bit<32> v13; bit<32> v14; bit<32> v15;
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action code0(bit<32> v) { md.v0 = v; }
    table codes0 { key = { hdr.words.w0[31:28] : exact; hdr.ports.dst : exact; } actions = { code0; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v0; o = v; } };
    action code1(bit<32> v) { md.v1 = v; }
    table codes1 { key = { hdr.words.w1[31:28] : exact; hdr.ports.dst : exact; } actions = { code1; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v1; o = v; } };
    action code2(bit<32> v) { md.v2 = v; }
    table codes2 { key = { hdr.words.w2[31:28] : exact; hdr.ports.dst : exact; } actions = { code2; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v2; o = v; } };
    action code3(bit<32> v) { md.v3 = v; }
    table codes3 { key = { hdr.words.w3[31:28] : exact; hdr.ports.dst : exact; } actions = { code3; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v3; o = v; } };
    action code4(bit<32> v) { md.v4 = v; }
    table codes4 { key = { hdr.words.w4[31:28] : exact; hdr.ports.dst : exact; } actions = { code4; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r4) add4 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v4; o = v; } };
    action code5(bit<32> v) { md.v5 = v; }
    table codes5 { key = { hdr.words.w5[31:28] : exact; hdr.ports.dst : exact; } actions = { code5; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r5) add5 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v5; o = v; } };
    action code6(bit<32> v) { md.v6 = v; }
    table codes6 { key = { hdr.words.w6[31:28] : exact; hdr.ports.dst : exact; } actions = { code6; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r6;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r6) add6 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v6; o = v; } };
    action code7(bit<32> v) { md.v7 = v; }
    table codes7 { key = { hdr.words.w7[31:28] : exact; hdr.ports.dst : exact; } actions = { code7; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r7;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r7) add7 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v7; o = v; } };
    action code8(bit<32> v) { md.v8 = v; }
    table codes8 { key = { hdr.words.w8[31:28] : exact; hdr.ports.dst : exact; } actions = { code8; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r8;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r8) add8 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v8; o = v; } };
    action code9(bit<32> v) { md.v9 = v; }
    table codes9 { key = { hdr.words.w9[31:28] : exact; hdr.ports.dst : exact; } actions = { code9; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r9;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r9) add9 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v9; o = v; } };
    action code10(bit<32> v) { md.v10 = v; }
    table codes10 { key = { hdr.words.w10[31:28] : exact; hdr.ports.dst : exact; } actions = { code10; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r10;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r10) add10 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v10; o = v; } };
    action code11(bit<32> v) { md.v11 = v; }
    table codes11 { key = { hdr.words.w11[31:28] : exact; hdr.ports.dst : exact; } actions = { code11; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r11;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r11) add11 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v11; o = v; } };
    action code12(bit<32> v) { md.v12 = v; }
    table codes12 { key = { hdr.words.w12[31:28] : exact; hdr.ports.dst : exact; } actions = { code12; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r12;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r12) add12 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v12; o = v; } };
    action code13(bit<32> v) { md.v13 = v; }
    table codes13 { key = { hdr.words.w13[31:28] : exact; hdr.ports.dst : exact; } actions = { code13; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r13;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r13) add13 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v13; o = v; } };
    action code14(bit<32> v) { md.v14 = v; }
    table codes14 { key = { hdr.words.w14[31:28] : exact; hdr.ports.dst : exact; } actions = { code14; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r14;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r14) add14 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v14; o = v; } };
    action code15(bit<32> v) { md.v15 = v; }
    table codes15 { key = { hdr.words.w15[31:28] : exact; hdr.ports.dst : exact; } actions = { code15; NoAction; } const default_action = NoAction(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) r15;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r15) add15 = { void apply(inout bit<32> v, out bit<32> o) { v = v + md.v15; o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    apply {
        codes0.apply();
        codes1.apply();
        codes2.apply();
        codes3.apply();
        codes4.apply();
        codes5.apply();
        codes6.apply();
        codes7.apply();
        codes8.apply();
        codes9.apply();
        codes10.apply();
        codes11.apply();
        codes12.apply();
        codes13.apply();
        codes14.apply();
        codes15.apply();
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
