// Functions that return tuples and structs.
#include "../first.p4h"
struct headers_t { data_t d; }
struct S { tuple<bit<8>, bit<8>> t; }
tuple<bit<8>, bool> two(in bit<8> v) { return { v + 1, v == 0 }; }
struct P2 { bit<8> a; bit<8> b; }
P2 mk2(in bit<8> a) { return { a = a, b = a + 1 }; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; tuple<bit<8>, bool> r = two(h.d.x); h.d.y = r[0]; if (r[1]) { h.d.z = 1; }
      h.d.w[7:0] = mk2(h.d.x).b; P2 q = mk2(7); q.a = q.b; h.d.w[15:8] = q.a; }
}
#include "../rest.p4h"
