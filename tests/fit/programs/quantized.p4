// Sums of quantized gradients: workers send an exponent and eight numbers; the largest exponent of a slot is kept for the next round, the
// numbers are shifted to the common exponent by a table and added up in registers.
#define METADATA bit<16> slot; bit<8> largest; bit<8> shift; bit<8> count; bit<8> members;
#define WORDS bit<16> slot; bit<8> job; bit<8> exponent; bit<8> common; bit<8> flags; bit<16> round; int<32> w0; int<32> w1; int<32> w2; int<32> w3; \
    int<32> w4; int<32> w5; int<32> w6; int<32> w7;
#include "frame.p4"
#define BY(S) action by##S() { hdr.words.w0 = hdr.words.w0 >> S; hdr.words.w1 = hdr.words.w1 >> S; hdr.words.w2 = hdr.words.w2 >> S; \
    hdr.words.w3 = hdr.words.w3 >> S; hdr.words.w4 = hdr.words.w4 >> S; hdr.words.w5 = hdr.words.w5 >> S; hdr.words.w6 = hdr.words.w6 >> S; \
    hdr.words.w7 = hdr.words.w7 >> S; }
#define SUM(N) \
    Register<int<32>, bit<16>>(4096) sums##N; \
    RegisterAction<int<32>, bit<16>, int<32>>(sums##N) add##N = { void apply(inout int<32> v, out int<32> r) { v = v |+| hdr.words.w##N; r = v; } }; \
    RegisterAction<int<32>, bit<16>, int<32>>(sums##N) set##N = { void apply(inout int<32> v, out int<32> r) { v = hdr.words.w##N; r = v; } }; \
    action a##N() { hdr.words.w##N = add##N.execute(md.slot); } \
    action s##N() { hdr.words.w##N = set##N.execute(md.slot); } \
    table sum##N { key = { md.count : exact; } actions = { a##N; s##N; } const default_action = a##N(); const entries = { 1 : s##N(); } size = 1; }
control Ingress(INGRESS_ARGS) {
    action job(bit<16> base, bit<8> members) { md.slot = hdr.words.slot + base; md.members = members; }
    action no_job() { dprsr.drop_ctl = 1; exit; }
    table jobs { key = { hdr.words.job : exact; ig.ingress_port : exact; } actions = { job; no_job; } const default_action = no_job(); size = 256; }
    Register<bit<8>, bit<16>>(4096) counts;
    RegisterAction<bit<8>, bit<16>, bit<8>>(counts) more = {
        void apply(inout bit<8> v, out bit<8> r) { if (v >= md.members) { v = 1; } else { v = v + 1; } r = v; } };
    Register<bit<8>, bit<16>>(4096) exponents;
    RegisterAction<bit<8>, bit<16>, bit<8>>(exponents) larger = {
        void apply(inout bit<8> v, out bit<8> r) { if (hdr.words.exponent > v) { v = hdr.words.exponent; } r = v; } };
    action count() { md.count = more.execute(md.slot); }
    action exponent() { md.largest = larger.execute(md.slot); }
    action difference() { md.shift = hdr.words.common - hdr.words.exponent; }
    BY(1) BY(2) BY(3) BY(4) BY(5) BY(6) BY(7) BY(8) BY(12) BY(16)
    action too_far() { hdr.words.w0 = 0; hdr.words.w1 = 0; hdr.words.w2 = 0; hdr.words.w3 = 0; hdr.words.w4 = 0; hdr.words.w5 = 0;
        hdr.words.w6 = 0; hdr.words.w7 = 0; }
    table shifts { key = { md.shift : exact; } actions = { by1; by2; by3; by4; by5; by6; by7; by8; by12; by16; too_far; NoAction; }
        const default_action = too_far();
        const entries = { 0 : NoAction(); 1 : by1(); 2 : by2(); 3 : by3(); 4 : by4(); 5 : by5(); 6 : by6(); 7 : by7(); 8 : by8(); 12 : by12(); 16 : by16(); }
        size = 16; }
    SUM(0) SUM(1) SUM(2) SUM(3) SUM(4) SUM(5) SUM(6) SUM(7)
    action everybody(MulticastGroupId_t group) { tm.mcast_grp_a = group; hdr.words.exponent = md.largest; hdr.words.flags = 1; }
    action wait() { dprsr.drop_ctl = 1; }
    table complete { key = { hdr.words.job : exact; md.count : exact; } actions = { everybody; wait; } const default_action = wait(); size = 256; }
    apply {
        if (hdr.words.isValid()) {
            jobs.apply();
            count();
            exponent();
            difference();
            shifts.apply();
            sum0.apply(); sum1.apply(); sum2.apply(); sum3.apply(); sum4.apply(); sum5.apply(); sum6.apply(); sum7.apply();
            complete.apply();
        }
    }
}
#include "frame_end.p4"
