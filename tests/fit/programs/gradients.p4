// Sums of gradients: 16 values a packet in two banks, a bitmap of workers, a count, the result by multicast.
#define METADATA bit<32> before; bit<32> bit_of; bit<32> seen; bit<8> count; bit<16> slot; bit<1> again;
#define WORDS bit<8> job; bit<8> worker; bit<16> slot; bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; \
    bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15;
#include "frame.p4"
#define SUM(N) \
    Register<bit<32>, bit<16>>(8192) sum##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(sum##N) add##N = { void apply(inout bit<32> v, out bit<32> r) { v = v + hdr.words.w##N; r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(sum##N) new##N = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.words.w##N; r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(sum##N) get##N = { void apply(inout bit<32> v, out bit<32> r) { r = v; } }; \
    action a##N() { hdr.words.w##N = add##N.execute(md.slot); } \
    action n##N() { hdr.words.w##N = new##N.execute(md.slot); } \
    action g##N() { hdr.words.w##N = get##N.execute(md.slot); } \
    table at##N { key = { md.before : ternary; md.again : exact; } actions = { a##N; n##N; g##N; } \
        const entries = { (0, 0) : n##N(); (_, 0) : a##N(); (_, 1) : g##N(); } size = 3; }
control Ingress(INGRESS_ARGS) {
    action member(bit<32> one, bit<16> base) { md.bit_of = one; md.slot = hdr.words.slot + base; }
    action stranger() { dprsr.drop_ctl = 1; exit; }
    table workers { key = { hdr.words.job : exact; hdr.words.worker : exact; ig.ingress_port : exact; }
        actions = { member; stranger; } const default_action = stranger(); size = 1024; }
    Register<bit<32>, bit<16>>(8192) bitmap;
    RegisterAction<bit<32>, bit<16>, bit<32>>(bitmap) mark = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = v | md.bit_of; } };
    Register<bit<8>, bit<16>>(8192) counts;
    RegisterAction<bit<8>, bit<16>, bit<8>>(counts) more = { void apply(inout bit<8> v, out bit<8> r) { v = v + 1; r = v; } };
    RegisterAction<bit<8>, bit<16>, bit<8>>(counts) first = { void apply(inout bit<8> v, out bit<8> r) { v = 1; r = v; } };
    action count_more() { md.count = more.execute(md.slot); }
    action count_first() { md.count = first.execute(md.slot); }
    action repeated() { md.again = 1; }
    SUM(0) SUM(1) SUM(2) SUM(3) SUM(4) SUM(5) SUM(6) SUM(7) SUM(8) SUM(9) SUM(10) SUM(11) SUM(12) SUM(13) SUM(14) SUM(15)
    action all_there(MulticastGroupId_t group) { tm.mcast_grp_a = group; }
    action wait() { dprsr.drop_ctl = 1; }
    table quorum { key = { hdr.words.job : exact; md.count : exact; md.again : exact; } actions = { all_there; wait; } const default_action = wait(); size = 256; }
    apply {
        if (hdr.words.isValid()) {
            workers.apply();
            md.before = mark.execute(md.slot);
            md.seen = md.before & md.bit_of;
            if (md.seen != 0) { repeated(); }
            else if (md.before == 0) { count_first(); } else { count_more(); }
            at0.apply(); at1.apply(); at2.apply(); at3.apply(); at4.apply(); at5.apply(); at6.apply(); at7.apply();
            at8.apply(); at9.apply(); at10.apply(); at11.apply(); at12.apply(); at13.apply(); at14.apply(); at15.apply();
            quorum.apply();
        }
    }
}
#include "frame_end.p4"
