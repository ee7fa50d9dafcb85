// Blocks applied by their type's name.
#include "../first.p4h"
struct headers_t { data_t d; }
control Inner(inout bit<8> v) { apply { v = v + 1; } }
control Outer(inout bit<8> v)(bit<8> k) { Inner() i; apply { i.apply(v); v = v * k; } }
parser Q(packet_in p, out data_t d) { state start { p.extract(d); transition accept; } }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { Q.apply(p, h.d); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Outer(3) o; 
    apply { s.egress_spec = 1; o.apply(h.d.x); Inner.apply(h.d.y); { bit<8> q = h.d.z; Inner.apply(q); h.d.z = q; } }
}
#include "../rest.p4h"
