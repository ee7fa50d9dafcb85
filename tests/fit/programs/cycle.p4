// A register that is read before and after another one.
#define METADATA bit<32> s; bit<32> k;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<16>>(1024) r;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r) first = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(r) second = { void apply(inout bit<32> v) { v = md.s; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action keep(bit<32> v) { md.s = v; }
    table t { key = { md.k : exact; } actions = { keep; NoAction; } const default_action = NoAction(); size = 512; }
    apply {
        if (hdr.ip.tos == 1) { md.k = first.execute(hdr.ports.src); }
        t.apply();
        if (hdr.ip.tos == 2) { second.execute(hdr.ports.src); }
        hdr.words.w0 = md.k;
        send(1);
    }
}
#include "frame_end.p4"
