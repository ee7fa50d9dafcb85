// Has this worker been here? A bitmap in a register, and a counter of workers.
#define METADATA bit<32> worker; bit<32> before; bit<8> count;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Register<bit<8>, bit<16>>(8192) count;
    RegisterAction<bit<8>, bit<16>, bit<8>>(count) arrive = { void apply(inout bit<8> v, out bit<8> o) { o = v; if (v == 7) { v = 0; } else { v = v + 1; } } };
    Register<bit<32>, bit<16>>(8192) seen;
    RegisterAction<bit<32>, bit<16>, bit<32>>(seen) mark = { void apply(inout bit<32> v, out bit<32> o) { o = v; v = v | md.worker; } };
    action set_worker(bit<32> mask) { md.worker = mask; }
    table workers { key = { hdr.ip.src : exact; } actions = { set_worker; NoAction; } const default_action = NoAction(); size = 64; }
    action and_() { md.before = md.before & md.worker; }
    table known { actions = { and_; } const default_action = and_(); size = 1; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action multicast(bit<16> group) { tm.mcast_grp_a = group; }
    table jobs { key = { hdr.ports.dst : exact; } actions = { multicast; NoAction; } const default_action = NoAction(); size = 64; }
    apply {
        workers.apply();
        md.before = mark.execute(hdr.ports.src);
        known.apply();
        if (md.before == 0) {
            md.count = arrive.execute(hdr.ports.src);
            if (md.count == 7) { jobs.apply(); }
        }
    }
}
#include "frame_end.p4"
