// Fields that start and end within a byte.
#include "../first.p4h"
header w_t { bit<1> a; bit<3> b; bit<12> c; bit<33> d; bit<7> e; bit<64> f; int<5> g; bit<3> h; }
struct headers_t { data_t d; w_t w; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.w); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1;
      h.w.a = h.w.a + 1; h.w.b = h.w.b - 1; h.w.c = h.w.c * h.w.c; h.w.d = h.w.d << 1; h.w.e = -h.w.e; h.w.f = h.w.f + 0xffff_ffff_ffff_ffff; h.w.g = h.w.g |+| 15; h.w.h = 3w7 / 2; }
}
#include "../rest.p4h"
