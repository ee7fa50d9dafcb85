// One member is valid at a time.
#include <core.p4>
#include <v1model.p4>
header k_t { bit<8> kind; bit<8> seen; }
header one_t { bit<8> v; }
header two_t { bit<16> v; }
header_union either_t { one_t one; two_t two; }
struct headers_t { k_t k; either_t u; either_t[2] us; }
struct meta_t { bit<8> x; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.k); transition select(h.k.kind) { 1: one; 4: one; 2: two; 5: two; 3: stack; } }
    state one { p.extract(h.u.one); transition accept; }
    state two { p.extract(h.u.two); transition accept; }
    state stack {
        p.extract(h.us.next.one);
        p.extract(h.us.next.two);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.u.isValid()) { h.k.seen = h.k.seen + 1; }
        if (h.u.one.isValid()) { h.k.seen = h.k.seen + 0x10; }
        if (h.k.kind == 4) { h.u.two.setValid(); h.u.two.v = 0xabcd; }
        if (h.k.kind == 5) { h.u.two.setInvalid(); }
        if (h.u.one.isValid()) { h.k.seen = h.k.seen + 0x20; }
        if (h.u.isValid()) { h.k.seen = h.k.seen + 2; }
        if (s.parser_error == error.NoMatch) { h.k.seen = 0xee; }
    }
}
#include "../rest.p4h"
