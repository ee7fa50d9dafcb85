// Whole unions assigned and compared; stacks of unions.
#include "../first.p4h"
header i_t { bit<8> v; }
header j_t { bit<16> v; }
header_union u_t { i_t i; j_t j; }
struct headers_t { data_t d; u_t u; u_t w; u_t[2] us; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1;
      h.u.i = { 5 }; 
      h.w = h.u;
      if (h.u == h.w) { h.d.y = 1; }
      h.u.j = { 0x1234 };
      if (h.u.i.isValid()) { h.d.z = 1; }
      h.us[1].j = h.u.j;
      h.us[0] = h.us[1];
      h.us[1].j.setInvalid();
      if (h.d.x == 1) { h.u.j.setInvalid(); h.w.i.setInvalid(); }
    }
}
#include "../rest.p4h"
