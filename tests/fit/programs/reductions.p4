// Maxima, minima and sums of a job's sixteen numbers, one operation a job, results to all members when the last came.
#define METADATA bit<16> slot; bit<8> op; bit<8> need; bit<8> have;
#define WORDS bit<16> job; bit<16> index; bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7;
#include "frame.p4"
#define CELL(N) \
    Register<bit<32>, bit<16>>(16384) cell##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cell##N) set##N = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.words.w##N; r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cell##N) sum##N = { void apply(inout bit<32> v, out bit<32> r) { v = v + hdr.words.w##N; r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cell##N) max##N = { void apply(inout bit<32> v, out bit<32> r) { v = max(v, hdr.words.w##N); r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cell##N) min##N = { void apply(inout bit<32> v, out bit<32> r) { v = min(v, hdr.words.w##N); r = v; } }; \
    action s##N() { hdr.words.w##N = set##N.execute(md.slot); } action a##N() { hdr.words.w##N = sum##N.execute(md.slot); } \
    action x##N() { hdr.words.w##N = max##N.execute(md.slot); } action n##N() { hdr.words.w##N = min##N.execute(md.slot); } \
    table t##N { key = { md.have : ternary; md.op : exact; } actions = { s##N; a##N; x##N; n##N; NoAction; } const default_action = NoAction(); \
        const entries = { (1, 0) : s##N(); (1, 1) : s##N(); (1, 2) : s##N(); (_, 0) : a##N(); (_, 1) : x##N(); (_, 2) : n##N(); } size = 6; }
control Ingress(INGRESS_ARGS) {
    action job(bit<8> op, bit<8> need, bit<16> base) { md.op = op; md.need = need; md.slot = hdr.words.index + base; }
    action unknown() { dprsr.drop_ctl = 1; exit; }
    table jobs { key = { hdr.words.job : exact; ig.ingress_port : exact; } actions = { job; unknown; } const default_action = unknown(); size = 4096; }
    Register<bit<8>, bit<16>>(16384) counts;
    RegisterAction<bit<8>, bit<16>, bit<8>>(counts) more = { void apply(inout bit<8> v, out bit<8> r) { if (v == md.need) { v = 1; } else { v = v + 1; } r = v; } };
    action count() { md.have = more.execute(md.slot); }
    CELL(0) CELL(1) CELL(2) CELL(3) CELL(4) CELL(5) CELL(6) CELL(7)
    action done(MulticastGroupId_t group) { tm.mcast_grp_a = group; }
    action wait() { dprsr.drop_ctl = 1; }
    table quorum { key = { hdr.words.job : exact; md.have : exact; } actions = { done; wait; } const default_action = wait(); size = 4096; }
    apply {
        if (hdr.words.isValid()) {
            jobs.apply();
            count();
            t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply();
            quorum.apply();
        }
    }
}
#include "frame_end.p4"
