// Rounds of a vote: registers whose results decide about the next ones.
#define METADATA bit<16> round; bit<16> late; bit<16> count;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<16>, bit<16>>(8192) rounds;
    RegisterAction<bit<16>, bit<16>, bit<16>>(rounds) promise = { void apply(inout bit<16> v, out bit<16> o) { if (v < hdr.ip.id) { v = hdr.ip.id; } o = v; } };
    Register<bit<16>, bit<16>>(8192) votes;
    RegisterAction<bit<16>, bit<16>, bit<16>>(votes) vote = { void apply(inout bit<16> v, out bit<16> o) { v = v |+| 1; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen0) choose0 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w0; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen1) choose1 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w1; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen2) choose2 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w2; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen3) choose3 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w3; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen4) choose4 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w4; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen5) choose5 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w5; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen6;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen6) choose6 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w6; o = v; } };
    Register<bit<32>, bit<16>>(8192) chosen7;
    RegisterAction<bit<32>, bit<16>, bit<32>>(chosen7) choose7 = { void apply(inout bit<32> v, out bit<32> o) { v = hdr.words.w7; o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action difference() { md.late = md.round - hdr.ip.id; }
    apply {
        md.round = promise.execute(hdr.ports.src);
        difference();
        if (md.late == 0) {
            md.count = vote.execute(hdr.ports.src);
            if (md.count == 3) {
                hdr.words.w0 = choose0.execute(hdr.ports.src);
                hdr.words.w1 = choose1.execute(hdr.ports.src);
                hdr.words.w2 = choose2.execute(hdr.ports.src);
                hdr.words.w3 = choose3.execute(hdr.ports.src);
                hdr.words.w4 = choose4.execute(hdr.ports.src);
                hdr.words.w5 = choose5.execute(hdr.ports.src);
                hdr.words.w6 = choose6.execute(hdr.ports.src);
                hdr.words.w7 = choose7.execute(hdr.ports.src);
                send(2);
            } else { drop(); }
        } else { drop(); }
    }
}
#include "frame_end.p4"
