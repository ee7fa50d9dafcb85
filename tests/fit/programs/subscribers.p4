// Policers of an access network: a meter for each subscriber, one for each class of a subscriber, marks by both colours, and counters of
// what is dropped.
#define METADATA bit<14> subscriber; bit<1> class; bit<15> index; bit<8> whole; bit<8> part; bit<1> late;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    Meter<bit<14>>(16384, MeterType_t.BYTES) whole_rates;
    Meter<bit<15>>(32768, MeterType_t.BYTES) class_rates;
    Counter<bit<64>, bit<14>>(16384, CounterType_t.PACKETS_AND_BYTES) dropped;
    Counter<bit<64>, bit<14>>(16384, CounterType_t.PACKETS_AND_BYTES) passed;
    action subscriber(bit<14> n) { md.subscriber = n; }
    action nobody() { dprsr.drop_ctl = 1; exit; }
    table subscribers { key = { hdr.ip.src : exact; } actions = { subscriber; nobody; } const default_action = nobody(); size = 16384; }
    action class(bit<1> c) { md.class = c; }
    table classes { key = { hdr.ip.tos : ternary; hdr.ip.protocol : ternary; hdr.ports.dst : range; } actions = { class; NoAction; } const default_action = NoAction(); size = 256; }
    action of_class() { md.index = md.subscriber ++ md.class; }
    action measure_whole() { md.whole = whole_rates.execute(md.subscriber); }
    action measure_class() { md.part = class_rates.execute(md.index); }
    action mark(bit<8> tos) { hdr.ip.tos = tos; }
    action drop() { md.late = 1; dprsr.drop_ctl = 1; }
    table marks { key = { md.whole : ternary; md.part : ternary; md.class : ternary; } actions = { mark; drop; NoAction; } const default_action = NoAction(); size = 64; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table ports { key = { hdr.eth.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 2048; }
    apply {
        if (hdr.ip.isValid()) {
            subscribers.apply();
            classes.apply();
            of_class();
            measure_whole();
            measure_class();
            marks.apply();
            if (md.late == 1) { dropped.count(md.subscriber); } else { passed.count(md.subscriber); }
        }
        ports.apply();
    }
}
#include "frame_end.p4"
