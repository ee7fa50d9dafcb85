// A register that two branches use.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<16>>(1024) r;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r) add = { void apply(inout bit<32> v, out bit<32> o) { v = v + hdr.words.w0; o = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(r) get = { void apply(inout bit<32> v, out bit<32> o) { o = v; v = 0; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        if (hdr.ip.tos == 1) { hdr.words.w0 = add.execute(hdr.ports.src); } else if (hdr.ip.tos == 2) { hdr.words.w0 = get.execute(hdr.ports.src); }
        send(1);
    }
}
#include "frame_end.p4"
