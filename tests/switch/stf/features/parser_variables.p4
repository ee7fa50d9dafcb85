// A parser's variables; extraction into nothing; a varbit's size from a variable.
#include "../first.p4h"
header l_t { bit<8> n; }
header v_t { varbit<256> v; }
struct headers_t { data_t d; l_t l; v_t v; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<32> len = 0; bit<8> k;
    state start { p.extract(h.d); k = h.d.x; transition select(k) { 0: zero; 1 .. 5 : few; _ : reject; } }
    state zero { p.extract<l_t>(_); transition accept; }
    state few { len = (bit<32>)k << 3; p.extract(h.l); p.extract(h.v, len); k = k + 1; m.unused = k; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.y = m.unused; if (h.v.isValid()) { h.l.n = 0xff; } }
}
#include "../rest.p4h"
