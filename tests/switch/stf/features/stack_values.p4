// Whole stacks assigned, compared and passed to a control.
#include "../first.p4h"
header i_t { bit<8> v; }
struct inner_t { i_t[2] s; bit<8> n; }
struct headers_t { data_t d; i_t[3] a; i_t[3] b; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.a.next); p.extract(h.a.next); transition accept; }
}
control Sub(inout i_t[3] x) { apply { x[2].setValid(); x[2].v = x[0].v + x[1].v; x.push_front(1); } }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Sub() sub;
    apply { s.egress_spec = 1; h.b = h.a; if (h.a == h.b) { h.d.y = 1; } sub.apply(h.b); if (h.a != h.b) { h.d.z = 1; }
      h.a[1] = {0x77}; h.b[0].setValid(); h.b[0] = h.a[2]; }
}
#include "../rest.p4h"
