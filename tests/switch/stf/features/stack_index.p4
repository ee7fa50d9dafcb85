// A stack indexed by variables, in the parser too; outside it an invalid header.
#include "../first.p4h"
header i_t { bit<8> v; }
struct headers_t { data_t d; i_t[4] s; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<8> n = 0;
    state start { p.extract(h.d); transition loop; }
    state loop { transition select(n == h.d.x) { true: accept; false: more; } }
    state more { p.extract(h.s[n]); n = n + 1; transition loop; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1;
      for (bit<8> i = 0; i < h.d.x; i = i + 1) { h.s[i].v = h.s[i].v + i; }
      bit<2> k = h.d.y[1:0];
      h.d.z = h.s[k].v; h.d.w = h.s[k].isValid() ? 16w1 : 0;
    }
}
#include "../rest.p4h"
