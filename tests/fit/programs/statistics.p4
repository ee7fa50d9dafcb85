// Twelve counters by port, class and size.
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS) c0;
    Counter<bit<64>, bit<10>>(1024, CounterType_t.PACKETS_AND_BYTES) c1;
    Counter<bit<64>, bit<11>>(2048, CounterType_t.PACKETS) c2;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c3;
    Counter<bit<64>, bit<10>>(1024, CounterType_t.PACKETS) c4;
    Counter<bit<64>, bit<11>>(2048, CounterType_t.PACKETS_AND_BYTES) c5;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS) c6;
    Counter<bit<64>, bit<10>>(1024, CounterType_t.PACKETS_AND_BYTES) c7;
    Counter<bit<64>, bit<11>>(2048, CounterType_t.PACKETS) c8;
    Counter<bit<64>, bit<9>>(512, CounterType_t.PACKETS_AND_BYTES) c9;
    Counter<bit<64>, bit<10>>(1024, CounterType_t.PACKETS) c10;
    Counter<bit<64>, bit<11>>(2048, CounterType_t.PACKETS_AND_BYTES) c11;

    apply {
        c0.count(ig.ingress_port); c1.count(ig.ingress_port ++ hdr.ip.ecn[0:0]); c2.count(ig.ingress_port ++ hdr.ip.ecn); c3.count(ig.ingress_port); c4.count(ig.ingress_port ++ hdr.ip.ecn[0:0]); c5.count(ig.ingress_port ++ hdr.ip.ecn); c6.count(ig.ingress_port); c7.count(ig.ingress_port ++ hdr.ip.ecn[0:0]); c8.count(ig.ingress_port ++ hdr.ip.ecn); c9.count(ig.ingress_port); c10.count(ig.ingress_port ++ hdr.ip.ecn[0:0]); c11.count(ig.ingress_port ++ hdr.ip.ecn);
        send(1);
    }
}
#include "stack_end.p4"
