// Eight hashes of 16 bits.
#define METADATA bit<16> h0; bit<16> h1; bit<16> h2; bit<16> h3; bit<16> h4; bit<16> h5; bit<16> h6; bit<16> h7;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h0;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h1;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h2;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h3;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h4;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h5;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h6;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h7;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.h0 = h0.get({hdr.ip.src, hdr.ip.dst, hdr.words.w0});
        md.h1 = h1.get({hdr.ip.src, hdr.ip.dst, hdr.words.w1});
        md.h2 = h2.get({hdr.ip.src, hdr.ip.dst, hdr.words.w2});
        md.h3 = h3.get({hdr.ip.src, hdr.ip.dst, hdr.words.w3});
        md.h4 = h4.get({hdr.ip.src, hdr.ip.dst, hdr.words.w4});
        md.h5 = h5.get({hdr.ip.src, hdr.ip.dst, hdr.words.w5});
        md.h6 = h6.get({hdr.ip.src, hdr.ip.dst, hdr.words.w6});
        md.h7 = h7.get({hdr.ip.src, hdr.ip.dst, hdr.words.w7});
        hdr.words.w0[15:0] = md.h0;
        hdr.words.w1[15:0] = md.h1;
        hdr.words.w2[15:0] = md.h2;
        hdr.words.w3[15:0] = md.h3;
        hdr.words.w4[15:0] = md.h4;
        hdr.words.w5[15:0] = md.h5;
        hdr.words.w6[15:0] = md.h6;
        hdr.words.w7[15:0] = md.h7;
        send(1);
    }
}
#include "frame_end.p4"
