// Statements: every line marked with ! has an error, no other line has one.
#include <core.p4>
#include <v1model.p4>
enum E { A, B, C }
enum bit<8> SE { one = 1, two = 2 }
type bit<8> NT;
header h_t { bit<8> a; bit<8> b; }
header v_t { bit<8> n; varbit<64> v; }
header w_t { bit<32> w; int<16> s; }
header_union u_t { h_t h; w_t w; }
struct In { bit<8> p; bit<16> q; }
struct H { h_t h; h_t g; h_t[3] s; u_t u; v_t v; w_t w; }
struct M { bit<8> x; bit<16> y; int<8> i; bool f; bit<32> z; bit<48> l; E e; SE se; NT nt; error err; tuple<bit<8>, bool> t; In n; varbit<64> vb;  }
const bit<8> K0 = 3;
void g() { }
control CC() { apply {} } control CP()(bit<8> a) { apply {} }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); p.extract(hdr.w);  transition accept; }
    
}
control V(inout H hdr, inout M m) {  apply {  } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply { 
        // conditions
        { if (m.x) {} }  // !
        { if (1) {} }  // !
        { if (hdr.h) {} }  // !
        { if (hdr.h.isValid) {} }  // !
        { if ("a") {} }  // !
        { if (m.e) {} }  // !
        { goto x; }  // !
        { if (m.x == 1) m.x = 2; else m.x = 3; }
        { if (m.f) ; else ; }
        { m.x |+|= 1; }
        { m.x %= 2; }
        { { } }
        { m.x >>= 1; }
        // switch
        { switch (m.x) { 1: {} 1: {} } }  // !
        { switch (m.x) { 1: {} 0x1: {} } }  // !
        { switch (m.x) { K0: {} 3: {} } }  // !
        { switch (m.x) { 1: {} default: {} 2: {} } }  // !
        { switch (m.x) { default: {} default: {} } }  // !
        { switch (m.x) { m.x: {} } }  // !
        { switch (m.x) { 16w1: {} } }  // !
        { switch (m.x) { true: {} } }  // !
        { switch (m.x) { E.A: {} } }  // !
        { switch (m.e) { 0: {} } }  // !
        { switch (m.e) { E.A: {} E.A: {} } }  // !
        { switch (m.e) { A: {} } }  // !
        { switch (m.n) { default: {} } }  // !
        { switch (m.t) { default: {} } }  // !
        { switch (m.vb) { default: {} } }  // !
        { switch ("a") { default: {} } }  // !
        { switch (5) { 5: {} } }  // !
        { switch (m.err) { error.Nope: {} } }  // !
        { switch (m.err) { error.NoError: {} error.NoError: {} } }  // !
        { switch (m.x) { 1: { break; } } }  // !
        { switch (m.x) { 1: { continue; } } }  // !
        { switch (m.se) { SE.one: {} 1: {} } }  // !
        { switch (m.x) { SE.one: {} 1: {} } }  // !
        { switch (m.x) { 300: {} 44: {} } }  // !
        { switch (hdr.s) { default: {} } }  // !
        { switch (m.nt) { 1: {} } }  // !
        { switch (m.i) { -1: {} 255: {} } }  // !
        { switch (r.read(m.x, 0)) { default: {} } }  // !
        { switch (m.x) { 1: 2: { m.x = 1; } default: {} } }
        { switch (m.x) { } }
        { switch (m.x) { default: {} } }
        { switch (m.e) { E.A: {} E.B: {} } }
        { switch (m.err) { error.NoError: {} } }
        { switch (m.se) { SE.one: {} SE.two: {} } }
        { switch (m.x) { SE.one: {} K0: {} 1 + 4: {} } }
        { switch (m.i) { -1: {} } }
        { switch (m.x) { 1: @likely {} } }
        { switch (m.x + 1) { 2: {} 3: } }
        { switch (m.x) { (1): {} } }
        // loops
        { break; }  // !
        { continue; }  // !
        { if (m.f) { break; } }  // !
        { for (int i = 0; i < 3; i = i + 1) {} }  // !
        { for (int i in 1..3) {} }  // !
        { for (bit<8> i in m.x) {} }  // !
        { for (bit<8> i in hdr.h) {} }  // !
        { for (bit<8> i in hdr.s) {} }  // !
        { for (h_t i in 1..3) {} }  // !
        { for (bool i in 1..3) {} }  // !
        { for (bit<8> i in true..false) {} }  // !
        { for (bit<8> i in m.y..m.y) {} }  // !
        { for (bit<8> i = 0; i; i = i + 1) {} }  // !
        { for (i = 0; i < 3; i = i + 1) {} }  // !
        { for (bit<8> i in {1, true}) {} }  // !
        { for (E i in E.A..E.C) {} }  // !
        { for (bit<8> i in E) {} }  // !
        { for (bit<8> i in m.t) {} }  // !
        { for (bit<8> i in "a") {} }  // !
        { for (bit<8> i in I) {} }  // !
        { for (string s in {"a", "b"}) {} }  // !
        { for (bit<8> i in m.i..m.i) {} }  // !
        { for (tuple<bit<8>> q in {{1}, {true}}) {} }  // !
        { for (h_t q in {hdr.h, hdr.w}) {} }  // !
        { for (bit<8> i = 0; i < 3; i = i + 1) { if (m.f) break; else continue; } }
        { for (bit<8> i in 1..m.x) { m.y = m.y + 1; } }
        { for (h_t q in hdr.s) { m.x = q.a; } }
        { for (bit<8> i in {1, 2, m.x}) {} }
        { for (bit<8> i = 0, bit<8> j = 1; i < j; i = i + 1, j = j - 1) {} }
        { for (;m.x < 3;) { m.x = m.x + 1; } }
        { for (@foo bit<8> i in 1..3) {} }
        { @unroll for (bit<8> i in 1..3) {} }
        { for (bit<8> i in SE.one..SE.two) {} }
        { for (SE q in {SE.one, SE.two}) {} }
        // return and exit
        { return 1; }  // !
        { return m.x; }  // !
        { return g(); }  // !
        { return; }
        { exit; }
        { if (m.f) return; else exit; }
        // instantiation in block
        { CC() cc; cc.apply(); }  // !
        { register<bit<8>>(3) r; }  // !
        { { CC() cc; cc.apply(); } }  // !
        { if (m.f) { counter(1, CounterType.bytes) q; q.count(0); } }  // !
        { CC cc; cc.apply(); }  // !
        { CP.apply(); }  // !
        { P.apply(p, hdr, m, sm); }  // !
        { cc.apply(); }  // !
        { CC.apply(); }
     }
}
control Eg(inout H hdr, inout M m, inout standard_metadata_t sm) {  apply {  } }
control K(inout H hdr, inout M m) {  apply {  } }
control D(packet_out p, in H hdr) {  apply { p.emit(hdr.h);  } }

V1Switch(P(), V(), I(), Eg(), K(), D()) main;
