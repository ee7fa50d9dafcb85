// A register of 300,000 cells of 32 bits.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<32>, bit<32>>(300000) r;
    RegisterAction<bit<32>, bit<32>, bit<32>>(r) add = { void apply(inout bit<32> v, out bit<32> o) { v = v + hdr.words.w1; o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        hdr.words.w1 = add.execute(hdr.words.w0);
        send(1);
    }
}
#include "frame_end.p4"
