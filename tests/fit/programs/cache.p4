// A key-value cache: lookup, validity, eight words of values in registers, a count of hits.
#define METADATA bit<16> index; bit<8> valid;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action found(bit<16> index) { md.index = index; }
    table keys { key = { hdr.words.w0 : exact; hdr.words.w1 : exact; hdr.words.w2 : exact; hdr.words.w3 : exact; } actions = { found; NoAction; } const default_action = NoAction(); size = 16384; }
    Register<bit<8>, bit<16>>(16384) valid;
    RegisterAction<bit<8>, bit<16>, bit<8>>(valid) is_valid = { void apply(inout bit<8> v, out bit<8> o) { o = v; } };
    Counter<bit<32>, bit<16>>(16384, CounterType_t.PACKETS) hits;
    Register<bit<32>, bit<16>>(16384) value0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(value0) get0 = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
    Register<bit<32>, bit<16>>(16384) value1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(value1) get1 = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
    Register<bit<32>, bit<16>>(16384) value2;
    RegisterAction<bit<32>, bit<16>, bit<32>>(value2) get2 = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
    Register<bit<32>, bit<16>>(16384) value3;
    RegisterAction<bit<32>, bit<16>, bit<32>>(value3) get3 = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 1024; }
    apply {
        if (hdr.words.isValid()) {
            if (keys.apply().hit) {
                hits.count(md.index);
                md.valid = is_valid.execute(md.index);
                if (md.valid == 1) {
                    hdr.words.w4 = get0.execute(md.index);
                    hdr.words.w5 = get1.execute(md.index);
                    hdr.words.w6 = get2.execute(md.index);
                    hdr.words.w7 = get3.execute(md.index);
                }
            }
        }
        routes.apply();
    }
}
#include "frame_end.p4"
