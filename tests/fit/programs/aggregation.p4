// A gradient aggregator: bitmap, count and eight sums, read back when all workers came.
#define METADATA bit<32> before; bit<32> new_; bit<8> count;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<16>>(8192) bitmap;
    RegisterAction<bit<32>, bit<16>, bit<32>>(bitmap) mark = { void apply(inout bit<32> v, out bit<32> o) { o = v; v = v | hdr.ip.src; } };
    Register<bit<8>, bit<16>>(8192) counts;
    RegisterAction<bit<8>, bit<16>, bit<8>>(counts) arrive = { void apply(inout bit<8> v, out bit<8> o) { if (v >= 7) { v = 0; } else { v = v + 1; } o = v; } };
    Register<bit<32>, bit<16>>(8192) r0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r0) add0 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w0; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r1) add1 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w1; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r2) add2 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w2; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r3) add3 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w3; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r4;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r4) add4 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w4; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r5;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r5) add5 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w5; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r6;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r6) add6 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w6; out_ = v; } };
    Register<bit<32>, bit<16>>(8192) r7;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r7) add7 = { void apply(inout bit<32> v, out bit<32> out_) { v = v + hdr.words.w7; out_ = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action multicast(bit<16> group) { tm.mcast_grp_a = group; }
    table jobs { key = { hdr.ports.dst : exact; } actions = { multicast; drop; } const default_action = drop(); size = 64; }
    apply {
        if (hdr.words.isValid()) {
            md.before = mark.execute(hdr.ports.src);
            md.new_ = md.before & hdr.ip.src;
            if (md.new_ == 0) {
                md.count = arrive.execute(hdr.ports.src);
                hdr.words.w0 = add0.execute(hdr.ports.src);
                hdr.words.w1 = add1.execute(hdr.ports.src);
                hdr.words.w2 = add2.execute(hdr.ports.src);
                hdr.words.w3 = add3.execute(hdr.ports.src);
                hdr.words.w4 = add4.execute(hdr.ports.src);
                hdr.words.w5 = add5.execute(hdr.ports.src);
                hdr.words.w6 = add6.execute(hdr.ports.src);
                hdr.words.w7 = add7.execute(hdr.ports.src);
                if (md.count == 0) { jobs.apply(); } else { drop(); }
            } else { drop(); }
        } else { send(1); }
    }
}
#include "frame_end.p4"
