// An in-network cache: 16,384 keys, values of 32 bytes in eight registers, a sketch and a filter that report keys in demand.
#define METADATA bit<16> slot; bit<1> cached; bit<32> seen0; bit<32> seen1; bit<32> seen2; bit<1> told0; bit<1> told1; bit<1> valid;
#define WORDS bit<8> op; bit<8> flags; bit<128> key; bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7;
#include "frame.p4"
#define VALUE(N) \
    Register<bit<32>, bit<16>>(16384) value##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(value##N) get##N = { void apply(inout bit<32> v, out bit<32> r) { r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(value##N) put##N = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.words.v##N; r = v; } }; \
    action read##N() { hdr.words.v##N = get##N.execute(md.slot); } \
    action write##N() { put##N.execute(md.slot); } \
    table at##N { key = { hdr.words.op : exact; } actions = { read##N; write##N; NoAction; } \
        const entries = { 1 : read##N(); 3 : write##N(); } const default_action = NoAction(); size = 2; }
#define ROW(N, ALG) \
    Hash<bit<16>>(HashAlgorithm_t.ALG) h##N; \
    Register<bit<32>, bit<16>>(65536) row##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(row##N) more##N = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } }; \
    action count##N() { md.seen##N = more##N.execute(h##N.get({ hdr.words.key })); }
control Ingress(INGRESS_ARGS) {
    action hit(bit<16> slot) { md.slot = slot; md.cached = 1; }
    table cache { key = { hdr.words.key : exact; } actions = { hit; NoAction; } const default_action = NoAction(); size = 16384; }
    Register<bit<1>, bit<16>>(16384) usable;
    RegisterAction<bit<1>, bit<16>, bit<1>>(usable) is_usable = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    RegisterAction<bit<1>, bit<16>, bit<1>>(usable) now_usable = { void apply(inout bit<1> v, out bit<1> r) { v = 1; } };
    RegisterAction<bit<1>, bit<16>, bit<1>>(usable) not_usable = { void apply(inout bit<1> v, out bit<1> r) { v = 0; } };
    action check() { md.valid = is_usable.execute(md.slot); }
    action enable() { now_usable.execute(md.slot); }
    action disable() { not_usable.execute(md.slot); }
    table state { key = { hdr.words.op : exact; } actions = { check; enable; disable; NoAction; }
        const entries = { 1 : check(); 2 : disable(); 3 : enable(); } const default_action = NoAction(); size = 4; }
    Counter<bit<32>, bit<16>>(16384, CounterType_t.PACKETS) hits;
    ROW(0, CRC32) ROW(1, CRC16)
    Hash<bit<17>>(HashAlgorithm_t.CRC32) f0; Hash<bit<17>>(HashAlgorithm_t.CRC8) f1;
    Register<bit<1>, bit<17>>(131072) filter0; Register<bit<1>, bit<17>>(131072) filter1;
    RegisterAction<bit<1>, bit<17>, bit<1>>(filter0) set0 = { void apply(inout bit<1> v, out bit<1> r) { r = v; v = 1; } };
    RegisterAction<bit<1>, bit<17>, bit<1>>(filter1) set1 = { void apply(inout bit<1> v, out bit<1> r) { r = v; v = 1; } };
    action told_0() { md.told0 = set0.execute(f0.get({ hdr.words.key })); }
    action told_1() { md.told1 = set1.execute(f1.get({ hdr.words.key })); }
    action report() { dprsr.digest_type = 1; }
    table in_demand { key = { md.seen0[31:12] : ternary; md.seen1[31:12] : ternary; md.told0 : exact; md.told1 : exact; }
        actions = { report; NoAction; } const default_action = NoAction(); size = 16; }
    VALUE(0) VALUE(1) VALUE(2) VALUE(3) VALUE(4) VALUE(5) VALUE(6) VALUE(7)
    action answer() { bit<32> src = hdr.ip.src; hdr.ip.src = hdr.ip.dst; hdr.ip.dst = src; hdr.words.flags = 1; tm.ucast_egress_port = ig.ingress_port; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 1024; }
    apply {
        if (hdr.words.isValid()) {
            cache.apply();
            if (md.cached == 1) {
                state.apply();
                if (md.valid == 1 || hdr.words.op == 3) {
                    at0.apply(); at1.apply(); at2.apply(); at3.apply(); at4.apply(); at5.apply(); at6.apply(); at7.apply();
                    hits.count(md.slot);
                }
            } else if (hdr.words.op == 1) {
                count0(); count1(); told_0(); told_1();
                in_demand.apply();
            }
        }
        if (md.valid == 1) { answer(); } else { routes.apply(); }
    }
}
#include "frame_end.p4"
