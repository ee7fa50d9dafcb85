// A count-min sketch of four rows; the least count decides.
#define METADATA bit<32> c0; bit<32> c1; bit<32> c2; bit<32> c3; bit<32> a; bit<32> b; bit<20> high;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    CRCPolynomial<bit<32>>(0x04C11DB7, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF) p0;
    CRCPolynomial<bit<32>>(0x1EDC6F41, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF) p1;
    CRCPolynomial<bit<32>>(0xA833982B, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF) p2;
    CRCPolynomial<bit<32>>(0x741B8CD7, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF) p3;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, p0) h0;
    Register<bit<32>, bit<16>>(65536) row0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(row0) add0 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, p1) h1;
    Register<bit<32>, bit<16>>(65536) row1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(row1) add1 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, p2) h2;
    Register<bit<32>, bit<16>>(65536) row2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(row2) add2 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, p3) h3;
    Register<bit<32>, bit<16>>(65536) row3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(row3) add3 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };

    action low_a() { md.a = min(md.c0, md.c1); }
    action low_b() { md.b = min(md.c2, md.c3); }
    action low() { md.a = min(md.a, md.b); }
    action report() { dprsr.digest_type = 1; }
    table heavies { key = { md.high : ternary; } actions = { report; NoAction; } const default_action = NoAction(); size = 16; }
    apply {
        if (hdr.ip.isValid()) {
            md.c0 = add0.execute(h0.get({ hdr.ip.src, hdr.ip.dst }));
            md.c1 = add1.execute(h1.get({ hdr.ip.src, hdr.ip.dst }));
            md.c2 = add2.execute(h2.get({ hdr.ip.src, hdr.ip.dst }));
            md.c3 = add3.execute(h3.get({ hdr.ip.src, hdr.ip.dst }));
            low_a(); low_b(); low();
            md.high = md.a[31:12];
            heavies.apply();
        }
        send(1);
    }
}
#include "stack_end.p4"
