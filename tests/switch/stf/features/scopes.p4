// Shadowing, block constants, actions calling actions, struct of enum and bool.
#include "../first.p4h"
struct headers_t { data_t d; }
enum Eu { A, B }
struct st { bit<8> a; Eu e; bool b; }
action top(inout bit<8> a) { a = a |+| 200; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    st v = { 1, Eu.B, true };
    bit<8> g = h.d.x;
    action noarg() { g = g + 1; }
    action nested() { noarg(); top(g); top(h.d.y); }
    apply { s.egress_spec = 1;
      nested(); h.d.x = g;
      if (v.e == Eu.B && v.b) { h.d.z = v.a; }
      { bit<8> g = 7; h.d.w = (bit<16>)g; }
      int<16> n = (int<16>)h.d.w - 10;
      h.d.w = (bit<16>)(n < 0 ? -n : n);
      h.d.op = (bit<8>)(h.d.op == 1 ? 4w3 : 4w9);
      h.d.op[0:0] = (bit<1>)(h.d.x == 201);
      const bit<8> K = 5;
      h.d.y = h.d.y - K;
    }
}
#include "../rest.p4h"
