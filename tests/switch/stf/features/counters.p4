// Indirect counters, read back by the test; a direct one counts its entry's hits.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(4, CounterType.packets_and_bytes) by_op;
    counter(4, CounterType.packets) odd;
    @name("hits") direct_counter(CounterType.packets_and_bytes) entries_hit;
    action pass(bit<9> port) { s.egress_spec = port; entries_hit.count(); }
    action drop() { mark_to_drop(s); entries_hit.count(); }
    table t { key = { h.d.x : exact; } actions = { pass; drop; } counters = entries_hit; default_action = drop; }
    apply {
        by_op.count((bit<32>)h.d.op);
        if (h.d.op[0:0] == 1) { odd.count(0); }
        t.apply();
    }
}
#include "../rest.p4h"
