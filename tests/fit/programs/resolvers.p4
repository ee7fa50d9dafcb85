// Answers without a question are limited: three filters remember questions, a meter bounds the others by network.
#define METADATA bit<1> a0; bit<1> a1; bit<1> a2; bit<10> network; bit<8> color; bit<1> answer; bit<1> question;
#include "frame.p4"
#define FILTER(N, ALG) \
    Hash<bit<18>>(HashAlgorithm_t.ALG) q##N; Hash<bit<18>>(HashAlgorithm_t.ALG) r##N; \
    Register<bit<1>, bit<18>>(262144) filter##N; \
    RegisterAction<bit<1>, bit<18>, bit<1>>(filter##N) set##N = { void apply(inout bit<1> v, out bit<1> r) { v = 1; } }; \
    RegisterAction<bit<1>, bit<18>, bit<1>>(filter##N) get##N = { void apply(inout bit<1> v, out bit<1> r) { r = v; } }; \
    action ask##N() { set##N.execute(q##N.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src })); } \
    action look##N() { md.a##N = get##N.execute(r##N.get({ hdr.ip.dst, hdr.ip.src, hdr.ports.dst })); }
control Ingress(INGRESS_ARGS) {
    FILTER(0, CRC32) FILTER(1, CRC16) FILTER(2, CRC64)
    Meter<bit<10>>(1024, MeterType_t.BYTES) bounded;
    action network(bit<10> n) { md.network = n; }
    table networks { key = { hdr.ip.dst : lpm; } actions = { network; NoAction; } const default_action = NoAction(); size = 1024; }
    action measure() { md.color = bounded.execute(md.network); }
    action discard() { dprsr.drop_ctl = 1; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; discard; } const default_action = discard(); size = 4096; }
    Counter<bit<32>, bit<10>>(1024, CounterType_t.PACKETS) refused;
    apply {
        routes.apply();
        if (hdr.ports.isValid()) {
            networks.apply();
            if (hdr.ports.dst == 53) { ask0(); ask1(); ask2(); }
            else if (hdr.ports.src == 53) {
                look0(); look1(); look2();
                if (md.a0 == 0 || md.a1 == 0 || md.a2 == 0) {
                    measure();
                    if (md.color == 3) { discard(); refused.count(md.network); }
                }
            }
        }
    }
}
#include "frame_end.p4"
