// truncate counts from the first byte that leaves; of several the smallest counts.
#include "../first.p4h"
header h_t { bit<16> v; }
struct headers_t { h_t front; data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.d.op == 1) { truncate((bit<32>)h.d.x); }
        if (h.d.op == 2) { truncate((bit<32>)h.d.x); truncate(8); }
        if (h.d.y == 1) { h.front.setValid(); h.front.v = 0xabcd; }
    }
}
#include "../rest.p4h"
