// A digest takes nothing from the packet.
#include "../first.p4h"
struct headers_t { data_t d; }
struct learn_t { bit<8> x; bit<9> port; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        digest<learn_t>(1, { h.d.x, s.ingress_port });
        digest(2, h.d);
        log_msg("x is {} and y is {}", { h.d.x, h.d.y });
        assume(true);
        assert(h.d.op != 9);
    }
}
#include "../rest.p4h"
