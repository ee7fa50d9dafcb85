// Keywords of STF as names; keys with dots and colons in their names.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action a_(bit<8> priority) { h.d.z = priority; }
    table packet { key = { h.d.x : exact @name("x.y") ; h.d.y[3:0] : exact; h.d.w[11:4] : ternary @name("sl"); } actions = { a_; NoAction; } }
    apply { s.egress_spec = 1; packet.apply(); }
}
#include "../rest.p4h"
