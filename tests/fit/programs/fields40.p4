// Forty words of the packet, each with a constant added.
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15; bit<32> w16; bit<32> w17; bit<32> w18; bit<32> w19; bit<32> w20; bit<32> w21; bit<32> w22; bit<32> w23; bit<32> w24; bit<32> w25; bit<32> w26; bit<32> w27; bit<32> w28; bit<32> w29; bit<32> w30; bit<32> w31; bit<32> w32; bit<32> w33; bit<32> w34; bit<32> w35; bit<32> w36; bit<32> w37; bit<32> w38; bit<32> w39;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w0 = hdr.words.w0 + 1;
        hdr.words.w1 = hdr.words.w1 + 2;
        hdr.words.w2 = hdr.words.w2 + 3;
        hdr.words.w3 = hdr.words.w3 + 4;
        hdr.words.w4 = hdr.words.w4 + 5;
        hdr.words.w5 = hdr.words.w5 + 6;
        hdr.words.w6 = hdr.words.w6 + 7;
        hdr.words.w7 = hdr.words.w7 + 8;
        hdr.words.w8 = hdr.words.w8 + 9;
        hdr.words.w9 = hdr.words.w9 + 10;
        hdr.words.w10 = hdr.words.w10 + 11;
        hdr.words.w11 = hdr.words.w11 + 12;
        hdr.words.w12 = hdr.words.w12 + 13;
        hdr.words.w13 = hdr.words.w13 + 14;
        hdr.words.w14 = hdr.words.w14 + 15;
        hdr.words.w15 = hdr.words.w15 + 16;
        hdr.words.w16 = hdr.words.w16 + 17;
        hdr.words.w17 = hdr.words.w17 + 18;
        hdr.words.w18 = hdr.words.w18 + 19;
        hdr.words.w19 = hdr.words.w19 + 20;
        hdr.words.w20 = hdr.words.w20 + 21;
        hdr.words.w21 = hdr.words.w21 + 22;
        hdr.words.w22 = hdr.words.w22 + 23;
        hdr.words.w23 = hdr.words.w23 + 24;
        hdr.words.w24 = hdr.words.w24 + 25;
        hdr.words.w25 = hdr.words.w25 + 26;
        hdr.words.w26 = hdr.words.w26 + 27;
        hdr.words.w27 = hdr.words.w27 + 28;
        hdr.words.w28 = hdr.words.w28 + 29;
        hdr.words.w29 = hdr.words.w29 + 30;
        hdr.words.w30 = hdr.words.w30 + 31;
        hdr.words.w31 = hdr.words.w31 + 32;
        hdr.words.w32 = hdr.words.w32 + 33;
        hdr.words.w33 = hdr.words.w33 + 34;
        hdr.words.w34 = hdr.words.w34 + 35;
        hdr.words.w35 = hdr.words.w35 + 36;
        hdr.words.w36 = hdr.words.w36 + 37;
        hdr.words.w37 = hdr.words.w37 + 38;
        hdr.words.w38 = hdr.words.w38 + 39;
        hdr.words.w39 = hdr.words.w39 + 40;
        send(1);
    }
}
#include "frame_end.p4"
