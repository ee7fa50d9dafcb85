// Headers leave in the order of emit, not of parsing; twice if emitted twice; structs and stacks.
#include "../first.p4h"
header h_t { bit<8> v; }
struct inner_t { h_t p; h_t q; }
struct headers_t { data_t d; h_t a; h_t[2] s; inner_t in_; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.a); p.extract(h.s.next); p.extract(h.s.next);
                  p.extract(h.in_.p); p.extract(h.in_.q); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; if (h.d.op == 1) { h.a.setInvalid(); h.in_.p.setInvalid(); } }
}
#define HAS_DEPARSER
control D(packet_out p, in headers_t h) {
    apply {
        p.emit(h.in_);
        p.emit(h.s);
        p.emit(h.a);
        if (h.d.op == 2) { p.emit(h.a); }
        p.emit(h.d);
    }
}
#include "../rest.p4h"
