// Eight counters by port.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c0;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c1;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c2;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c3;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c4;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c5;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c6;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c7;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        c0.count(ig.ingress_port);
        c1.count(ig.ingress_port);
        c2.count(ig.ingress_port);
        c3.count(ig.ingress_port);
        c4.count(ig.ingress_port);
        c5.count(ig.ingress_port);
        c6.count(ig.ingress_port);
        c7.count(ig.ingress_port);
        send(1);
    }
}
#include "frame_end.p4"
