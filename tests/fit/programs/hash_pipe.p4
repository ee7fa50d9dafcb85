// Heavy flows: two stages that keep the larger counts.
#define METADATA bit<32> evicted; bit<32> count;
#include "stack.p4"

struct slot_t { bit<32> key; bit<32> count; }
control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Hash<bit<12>>(HashAlgorithm_t.CRC16) h0;
    Hash<bit<12>>(HashAlgorithm_t.CRC32) h1;
    Register<slot_t, bit<12>>(4096) stage0;
    RegisterAction<slot_t, bit<12>, bit<32>>(stage0) insert = { void apply(inout slot_t s, out bit<32> r) { if (s.key == hdr.ip.src) { s.count = s.count + 1; r = 0; } else { r = s.key; s.key = hdr.ip.src; s.count = 1; } } };
    Register<slot_t, bit<12>>(4096) stage1;
    RegisterAction<slot_t, bit<12>, bit<32>>(stage1) carry = { void apply(inout slot_t s, out bit<32> r) { if (s.key == md.evicted) { s.count = s.count + 1; } else { s.key = md.evicted; s.count = 1; } r = s.count; } };
    apply {
        if (hdr.ip.isValid()) {
            md.evicted = insert.execute(h0.get({ hdr.ip.src }));
            if (md.evicted != 0) { md.count = carry.execute(h1.get({ md.evicted })); }
            if (md.count == 1000) { dprsr.digest_type = 1; }
        }
        send(1);
    }
}
#include "stack_end.p4"
