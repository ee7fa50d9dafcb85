// Counters by index count in both pipelines; a direct one counts where its table's actions say so.
#include "first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
INGRESS(ingress) {
    Counter<bit<48>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) by_op;
    Counter<bit<32>, PortId_t>(16, PSA_CounterType_t.PACKETS) by_port;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits;
    action counted(PortId_t port) { hits.count(); send_to_port(o, port); }
    action twice(PortId_t port) { hits.count(); hits.count(); send_to_port(o, port); }
    action silent(PortId_t port) { send_to_port(o, port); }
    table routes {
        key = { h.d.x : exact; }
        actions = { counted; twice; silent; }
        default_action = counted((PortId_t) 9);
        psa_direct_counter = hits;
    }
    apply {
        by_op.count(h.d.op);
        by_port.count(s.ingress_port);
        routes.apply();
    }
}
#define HAS_EGRESS
EGRESS(egress) {
    Counter<bit<48>, PortId_t>(16, PSA_CounterType_t.BYTES) leaving;
    apply { leaving.count(s.egress_port); }
}
#include "rest.p4h"
