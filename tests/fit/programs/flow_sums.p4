// A table of flows that can be read back: each of three cells that a flow's hashes choose holds the exclusive or of addresses and ports,
// the number of flows and the number of packets. A filter of two bit vectors says whether a flow is new.
#define METADATA bit<32> ports; bit<16> i0; bit<16> i1; bit<16> i2; bit<1> s0; bit<1> s1; bit<16> f0; bit<16> f1;
#include "frame.p4"
#define ROW(N) \
    Register<bit<32>, bit<16>>(16384) sources##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(sources##N) source##N = { void apply(inout bit<32> v) { v = v ^ hdr.ip.src; } }; \
    Register<bit<32>, bit<16>>(16384) targets##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(targets##N) target##N = { void apply(inout bit<32> v) { v = v ^ hdr.ip.dst; } }; \
    Register<bit<32>, bit<16>>(16384) numbers##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(numbers##N) number##N = { void apply(inout bit<32> v) { v = v ^ md.ports; } }; \
    Register<bit<32>, bit<16>>(16384) packets##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(packets##N) packet##N = { void apply(inout bit<32> v) { v = v + 1; } }; \
    action x##N() { source##N.execute(md.i##N); } \
    action y##N() { target##N.execute(md.i##N); } \
    action z##N() { number##N.execute(md.i##N); } \
    action p##N() { packet##N.execute(md.i##N); }
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash0;
    Hash<bit<16>>(HashAlgorithm_t.CRC32) hash1;
    CRCPolynomial<bit<16>>(16w0x1021, true, false, false, 16w0, 16w0) other;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, other) hash2;
    Register<bit<1>, bit<16>>(65536) filter0;
    RegisterAction<bit<1>, bit<16>, bit<1>>(filter0) seen0 = { void apply(inout bit<1> v, out bit<1> r) { r = v; v = 1; } };
    Register<bit<1>, bit<16>>(65536) filter1;
    RegisterAction<bit<1>, bit<16>, bit<1>>(filter1) seen1 = { void apply(inout bit<1> v, out bit<1> r) { r = v; v = 1; } };
    ROW(0) ROW(1) ROW(2)
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table ports { key = { hdr.eth.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 8192; }
    action of_flow() { md.ports = hdr.ports.src ++ hdr.ports.dst; }
    action h0() { md.i0 = hash0.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst }); }
    action h1() { md.i1 = hash1.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst }); }
    action h2() { md.i2 = hash2.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst }); }
    action look0() { md.s0 = seen0.execute(md.i0); }
    action look1() { md.s1 = seen1.execute(md.i1); }
    apply {
        if (hdr.ports.isValid()) {
            of_flow();
            h0(); h1(); h2();
            look0(); look1();
            p0(); p1(); p2();
            if (md.s0 == 0 || md.s1 == 0) {
                x0(); x1(); x2();
                y0(); y1(); y2();
                z0(); z1(); z2();
            }
        }
        ports.apply();
    }
}
#include "frame_end.p4"
