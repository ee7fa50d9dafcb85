// Four rows of a count-min sketch; the least of the counts decides; the flow's key is kept where it is the largest of its bucket.
#define METADATA bit<32> c0; bit<32> c1; bit<32> c2; bit<32> c3; bit<32> m0; bit<32> m1; bit<32> least; bit<16> bucket; bit<32> kept;
#include "frame.p4"
#define KEY { hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst, hdr.ip.protocol }
#define ROW(N, P) \
    CRCPolynomial<bit<16>>(P, true, false, false, 0, 0) p##N; \
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, p##N) h##N; \
    Register<bit<32>, bit<16>>(65536) row##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(row##N) add##N = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } }; \
    action count##N() { md.c##N = add##N.execute(h##N.get(KEY)); }
control Ingress(INGRESS_ARGS) {
    ROW(0, 0x8005) ROW(1, 0x3D65) ROW(2, 0x1021) ROW(3, 0x0589)
    Hash<bit<16>>(HashAlgorithm_t.CRC32) place;
    Register<bit<32>, bit<16>>(16384) largest;
    RegisterAction<bit<32>, bit<16>, bit<32>>(largest) keep = { void apply(inout bit<32> v, out bit<32> r) {
        if (md.least > v) { v = md.least; r = 1; } } };
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 2048; }
    action tell() { dprsr.digest_type = 1; hdr.ip.tos = 0x20; }
    apply {
        if (hdr.ports.isValid()) {
            count0(); count1(); count2(); count3();
            md.bucket = place.get({ hdr.ip.dst, hdr.ports.dst });
            md.m0 = min(md.c0, md.c1);
            md.m1 = min(md.c2, md.c3);
            md.least = min(md.m0, md.m1);
            md.kept = keep.execute(md.bucket & 0x3fff);
            if (md.kept == 1) { tell(); }
        }
        routes.apply();
    }
}
#include "frame_end.p4"
