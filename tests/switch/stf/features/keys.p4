// Keys that are expressions, validity, slices, masks and enums; and how STF names them.
#include "../first.p4h"
enum bit<8> Kind { A = 1, B = 2 }
header n_t { bit<8> v; }
struct headers_t { data_t d; n_t[2] s; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition select(h.d.op) { 1: more; default: accept; } }
    state more { p.extract(h.s.next); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<9> p) { s.egress_spec = p; }
    table valid { key = { h.s[0].isValid() : exact; h.s[0].v : exact; } actions = { set; } }
    table sliced { key = { h.d.x[7:4] : exact; h.d.w & 0xff00 : exact @name("top"); } actions = { set; NoAction; } }
    table sum { key = { h.d.x + h.d.y : exact @name("sum"); (Kind)h.d.z : ternary @name("kind"); }
                actions = { set; NoAction; } }
    table flag { key = { h.d.x > 8w5 : exact @name("big"); } actions = { set; NoAction; } }
    apply {
        valid.apply();
        switch (h.d.op) { 2: { sliced.apply(); } 3: { sum.apply(); } 4: { flag.apply(); } }
    }
}
#include "../rest.p4h"
