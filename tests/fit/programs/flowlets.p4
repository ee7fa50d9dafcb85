// Flowlet switching: a flow may take another path after a pause of 50 us; paths by random choice, weights by entries.
#define METADATA bit<32> now; bit<32> gap; bit<16> id; bit<8> random; bit<8> path; bit<8> chosen; bit<1> fresh; bit<14> hop;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) flow;
    Random<bit<8>>() chance;
    Register<bit<32>, bit<16>>(65536) last;
    RegisterAction<bit<32>, bit<16>, bit<1>>(last) pause = { void apply(inout bit<32> v, out bit<1> r) {
        if (md.now - v > 50000) { r = 1; } else { r = 0; } v = md.now; } };
    Register<bit<8>, bit<16>>(65536) paths;
    RegisterAction<bit<8>, bit<16>, bit<8>>(paths) take = { void apply(inout bit<8> v, out bit<8> r) { r = v; } };
    RegisterAction<bit<8>, bit<16>, bit<8>>(paths) change = { void apply(inout bit<8> v, out bit<8> r) { v = md.path; r = v; } };
    action hop(bit<14> h) { md.hop = h; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { hop; NoAction; } const default_action = NoAction(); size = 4096; }
    action path(bit<8> p) { md.path = p; }
    table weights { key = { md.hop : exact; md.random : ternary; } actions = { path; NoAction; } const default_action = NoAction(); size = 2048; }
    action old_path() { md.chosen = take.execute(md.id); }
    action new_path() { md.chosen = change.execute(md.id); }
    action leave(PortId_t port, bit<48> mac) { tm.ucast_egress_port = port; hdr.eth.dst = mac; hdr.ip.ttl = hdr.ip.ttl - 1; }
    table next_hops { key = { md.hop : exact; md.chosen : exact; } actions = { leave; NoAction; } const default_action = NoAction(); size = 4096; }
    apply {
        if (hdr.ports.isValid()) {
            md.now = (bit<32>)ig.ingress_mac_tstamp[31:0];
            md.id = flow.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst });
            md.random = chance.get();
            routes.apply();
            weights.apply();
            md.fresh = pause.execute(md.id);
            if (md.fresh == 1) { new_path(); } else { old_path(); }
            next_hops.apply();
        }
    }
}
#include "frame_end.p4"
