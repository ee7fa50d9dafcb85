// A register of a million cells of 32 bits.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Register<bit<32>, bit<20>>(1048576) cells;
    RegisterAction<bit<32>, bit<20>, bit<32>>(cells) add = { void apply(inout bit<32> v, out bit<32> r) { v = v + 1; r = v; } };
    Hash<bit<20>>(HashAlgorithm_t.CRC32) h;
    apply { hdr.ip.src = add.execute(h.get({ hdr.ip.src, hdr.ip.dst })); send(1); }
}
#include "stack_end.p4"
