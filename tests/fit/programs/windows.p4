// Rates of flows in windows of time: a cell has the window's number and the bytes in it; a new window starts the count again.
#define METADATA bit<16> place; bit<32> window; bit<32> bytes; bit<16> rate; bit<1> heavy; bit<32> length;
#include "frame.p4"
struct cell_t { bit<32> window; bit<32> bytes; }
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC32) hash;
    Register<cell_t, bit<16>>(32768) cells;
    RegisterAction<cell_t, bit<16>, bit<32>>(cells) add = { void apply(inout cell_t c, out bit<32> r) {
        if (c.window == md.window) { c.bytes = c.bytes + md.length; } else { c.bytes = md.length; c.window = md.window; }
        r = c.bytes; } };
    action place() { md.place = hash.get({ hdr.ip.src, hdr.ip.dst, hdr.ip.protocol, hdr.ports.src, hdr.ports.dst }); }
    action window() { md.window = (bit<32>)ig.ingress_mac_tstamp[47:20]; }
    action length() { md.length = (bit<32>)hdr.ip.length; }
    action account() { md.bytes = add.execute(md.place); }
    action rate() { md.rate = md.bytes[31:16]; }
    action heavy(bit<6> dscp) { hdr.ip.tos[7:2] = dscp; tm.qid = 1; md.heavy = 1; }
    table limits { key = { md.rate : range; hdr.ip.dst : ternary; } actions = { heavy; NoAction; } const default_action = NoAction(); size = 512; }
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) by_port;
    action forward(PortId_t port) { tm.ucast_egress_port = port; by_port.count(); }
    action drop() { dprsr.drop_ctl = 1; by_port.count(); }
    table macs { key = { hdr.eth.dst : exact; } actions = { forward; drop; } const default_action = drop(); counters = by_port; size = 8192; }
    apply {
        if (hdr.ports.isValid()) {
            place(); window(); length();
            account();
            rate();
            limits.apply();
        }
        macs.apply();
    }
}
#include "frame_end.p4"
