// A register is used before and after another.
#define METADATA bit<32> x; bit<32> y;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Register<bit<32>, bit<8>>(256) a; Register<bit<32>, bit<8>>(256) b;
    RegisterAction<bit<32>, bit<8>, bit<32>>(a) read_a = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<8>, bit<32>>(a) add_a = { void apply(inout bit<32> v, out bit<32> r) { v = v + md.y; r = v; } };
    RegisterAction<bit<32>, bit<8>, bit<32>>(b) read_b = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<8>, bit<32>>(b) add_b = { void apply(inout bit<32> v, out bit<32> r) { v = v + md.x; r = v; } };
    apply {
        if (hdr.ip.protocol == 6) { md.x = read_a.execute(hdr.ip.ttl); hdr.ip.src = add_b.execute(hdr.ip.ttl); }
        else { md.y = read_b.execute(hdr.ip.ttl); hdr.ip.dst = add_a.execute(hdr.ip.ttl); }
        send(1);
    }
}
#include "stack_end.p4"
