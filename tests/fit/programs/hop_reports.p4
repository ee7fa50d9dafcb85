// Telemetry in band: each switch puts its number, ports, delay and queue in front of the words; sinks mirror to a collector.
#define EGRESS
#define METADATA bit<8> mirror; bit<10> session; bit<16> gone; bit<32> delay;
#include "frame.p4"
header hop_t { bit<32> number; bit<16> in_port; bit<16> out_port; bit<32> delay; bit<32> queue; }
control Ingress(INGRESS_ARGS) {
    action forward(PortId_t port, QueueId_t queue) { tm.ucast_egress_port = port; tm.qid = queue; }
    action discard() { dprsr.drop_ctl = 1; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; discard; } const default_action = discard(); size = 12288; }
    action watch(bit<10> session) { dprsr.mirror_type = 1; md.session = session; }
    table watched { key = { hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.ports.dst : range; hdr.ip.protocol : exact; }
        actions = { watch; NoAction; } const default_action = NoAction(); size = 1024; }
    apply { routes.apply(); watched.apply(); }
}
control Egress(EGRESS_ARGS) {
    Register<bit<32>, bit<9>>(512) worst;
    RegisterAction<bit<32>, bit<9>, bit<32>>(worst) keep = { void apply(inout bit<32> v, out bit<32> r) { if (md.delay > v) { v = md.delay; } r = v; } };
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) by_class;
    action number(bit<8> tos) { hdr.ip.tos = tos; by_class.count(); }
    action plain() { by_class.count(); }
    table classes { key = { hdr.ip.tos : ternary; eg.egress_port : exact; } actions = { number; plain; } const default_action = plain(); size = 512; counters = by_class; }
    action late() { hdr.ip.id = 0xffff; }
    table lateness { key = { md.delay[31:10] : ternary; } actions = { late; NoAction; } const default_action = NoAction(); size = 32; }
    apply {
        md.delay = (bit<32>)eg.deq_timedelta;
        classes.apply();
        md.delay = keep.execute(eg.egress_port);
        lateness.apply();
    }
}
#include "frame_end.p4"
