// The state of 32,768 flows in eight registers, each by the same hash.
#define METADATA bit<32> packets; bit<32> bytes; bit<32> time; bit<32> other;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Hash<bit<15>>(HashAlgorithm_t.CRC16) hash;
    Register<bit<32>, bit<15>>(32768) r0;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r0) u0 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = v + 1; } };
    Register<bit<32>, bit<15>>(32768) r1;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r1) u1 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = v + (bit<32>) hdr.ip.length; } };
    Register<bit<32>, bit<15>>(32768) r2;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r2) u2 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = ig.ingress_mac_tstamp[31:0]; } };
    Register<bit<32>, bit<15>>(32768) r3;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r3) u3 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = hdr.tcp.seq; } };
    Register<bit<32>, bit<15>>(32768) r4;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r4) u4 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = hdr.tcp.ack; } };
    Register<bit<32>, bit<15>>(32768) r5;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r5) u5 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = v | (bit<32>) hdr.tcp.flags; } };
    Register<bit<32>, bit<15>>(32768) r6;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r6) u6 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = hdr.ip.src; } };
    Register<bit<32>, bit<15>>(32768) r7;
    RegisterAction<bit<32>, bit<15>, bit<32>>(r7) u7 = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = (bit<32>) hdr.tcp.window; } };

    apply {
        if (hdr.tcp.isValid()) {
            bit<15> i = hash.get({ hdr.ip.src, hdr.ip.dst, hdr.ip.protocol, hdr.tcp.src, hdr.tcp.dst });
            md.packets = u0.execute(i); md.bytes = u1.execute(i); md.time = u2.execute(i); u3.execute(i); u4.execute(i); u5.execute(i); md.other = u6.execute(i); u7.execute(i);
            if (md.packets == 0) { dprsr.digest_type = 1; }
            hdr.tcp.seq = md.bytes; hdr.tcp.ack = md.time; hdr.ip.src = md.other;
        }
        send(1);
    }
}
#include "stack_end.p4"
