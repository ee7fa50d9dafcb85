// A register of pairs keeps a sequence number and a time; old packets are dropped.
#define METADATA bit<32> fresh;
#include "frame.p4"
struct pair_t { bit<32> number; bit<32> count; }

control Ingress(INGRESS_ARGS) {
    Register<pair_t, bit<16>>(4096) last;
    RegisterAction<pair_t, bit<16>, bit<32>>(last) check = { void apply(inout pair_t v, out bit<32> o) { if (v.number < hdr.words.w0) { v.number = hdr.words.w0; o = 1; } else { o = 0; } v.count = v.count + 1; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.fresh = check.execute(hdr.ports.src);
        if (md.fresh == 0) { drop(); } else { send(1); }
    }
}
#include "frame_end.p4"
