// Fifty words of the packet, each with one added.
#define WORDS bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15; bit<32> w16; bit<32> w17; bit<32> w18; bit<32> w19; bit<32> w20; bit<32> w21; bit<32> w22; bit<32> w23; bit<32> w24; bit<32> w25; bit<32> w26; bit<32> w27; bit<32> w28; bit<32> w29; bit<32> w30; bit<32> w31; bit<32> w32; bit<32> w33; bit<32> w34; bit<32> w35; bit<32> w36; bit<32> w37; bit<32> w38; bit<32> w39; bit<32> w40; bit<32> w41; bit<32> w42; bit<32> w43; bit<32> w44; bit<32> w45; bit<32> w46; bit<32> w47; bit<32> w48; bit<32> w49;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    apply {
        hdr.words.w0 = hdr.words.w0 + 1;
        hdr.words.w1 = hdr.words.w1 + 1;
        hdr.words.w2 = hdr.words.w2 + 1;
        hdr.words.w3 = hdr.words.w3 + 1;
        hdr.words.w4 = hdr.words.w4 + 1;
        hdr.words.w5 = hdr.words.w5 + 1;
        hdr.words.w6 = hdr.words.w6 + 1;
        hdr.words.w7 = hdr.words.w7 + 1;
        hdr.words.w8 = hdr.words.w8 + 1;
        hdr.words.w9 = hdr.words.w9 + 1;
        hdr.words.w10 = hdr.words.w10 + 1;
        hdr.words.w11 = hdr.words.w11 + 1;
        hdr.words.w12 = hdr.words.w12 + 1;
        hdr.words.w13 = hdr.words.w13 + 1;
        hdr.words.w14 = hdr.words.w14 + 1;
        hdr.words.w15 = hdr.words.w15 + 1;
        hdr.words.w16 = hdr.words.w16 + 1;
        hdr.words.w17 = hdr.words.w17 + 1;
        hdr.words.w18 = hdr.words.w18 + 1;
        hdr.words.w19 = hdr.words.w19 + 1;
        hdr.words.w20 = hdr.words.w20 + 1;
        hdr.words.w21 = hdr.words.w21 + 1;
        hdr.words.w22 = hdr.words.w22 + 1;
        hdr.words.w23 = hdr.words.w23 + 1;
        hdr.words.w24 = hdr.words.w24 + 1;
        hdr.words.w25 = hdr.words.w25 + 1;
        hdr.words.w26 = hdr.words.w26 + 1;
        hdr.words.w27 = hdr.words.w27 + 1;
        hdr.words.w28 = hdr.words.w28 + 1;
        hdr.words.w29 = hdr.words.w29 + 1;
        hdr.words.w30 = hdr.words.w30 + 1;
        hdr.words.w31 = hdr.words.w31 + 1;
        hdr.words.w32 = hdr.words.w32 + 1;
        hdr.words.w33 = hdr.words.w33 + 1;
        hdr.words.w34 = hdr.words.w34 + 1;
        hdr.words.w35 = hdr.words.w35 + 1;
        hdr.words.w36 = hdr.words.w36 + 1;
        hdr.words.w37 = hdr.words.w37 + 1;
        hdr.words.w38 = hdr.words.w38 + 1;
        hdr.words.w39 = hdr.words.w39 + 1;
        hdr.words.w40 = hdr.words.w40 + 1;
        hdr.words.w41 = hdr.words.w41 + 1;
        hdr.words.w42 = hdr.words.w42 + 1;
        hdr.words.w43 = hdr.words.w43 + 1;
        hdr.words.w44 = hdr.words.w44 + 1;
        hdr.words.w45 = hdr.words.w45 + 1;
        hdr.words.w46 = hdr.words.w46 + 1;
        hdr.words.w47 = hdr.words.w47 + 1;
        hdr.words.w48 = hdr.words.w48 + 1;
        hdr.words.w49 = hdr.words.w49 + 1;
        send(1);
    }
}
#include "frame_end.p4"
