// Slices, indexes, casts and struct values: every line marked with ! has an error, no other line has one.
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
void f<T>(in T a) { }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); p.extract(hdr.w);  transition accept; }
    
}
control V(inout H hdr, inout M m) {  apply {  } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply { 
        // slices
        { m.x = m.y[8:9]; }  // !
        { m.x = m.y[16:9]; }  // !
        { m.x = m.y[3:-1]; }  // !
        { m.x[m.x:0] = 1; }  // !
        { m.x = m.y[m.x:0]; }  // !
        { m.x = m.y[7:m.x]; }  // !
        { m.f = m.f[0:0]; }  // !
        { m.x = hdr.h[7:0]; }  // !
        { m.x = m.e[0:0]; }  // !
        { m.x = m.y[true:0]; }  // !
        { m.x = m.y["a":0]; }  // !
        { m.x = m.y[7:0][8:0]; }  // !
        { m.x = m.y[m.x+:8]; }  // !
        { m.x = m.y[9+:8]; }  // !
        { m.x = m.y[0+:m.x]; }  // !
        { m.x = m.y[0+:-8]; }  // !
        { m.x = m.y[-1+:8]; }  // !
        { m.x[8:8] = 1; }  // !
        { m.x = (1 << 5)[-1:0]; }  // !
        { m.x = m.t[0:0]; }  // !
        { m.x = m.vb[7:0]; }  // !
        { m.y[7:0] = m.y; }  // !
        { m.x = 8w3[8:0]; }  // !
        { m.x = m.y[E.A:0]; }  // !
        { (m.x + 1)[3:0] = 1; }  // !
        { m.x = hdr.s[1:0]; }  // !
        { m.x = m.y[0+:0] ++ m.x; }  // !
        { m.y = m.x[SE.two + 8:0]; }  // !
        { m.x = m.y[7:0]; }
        { m.x = m.y[0+:8]; }
        { m.x = 1234[7:0]; }
        { m.x = m.y[7+SE.one:SE.one]; }
        { m.x[3:0] = m.y[3:0]; }
        { m.x = m.i[7:0]; }
        { m.x[3:0][1:0] = 1; }
        { m.x = (m.x + m.x)[3:0] ++ 4w0; }
        { m.x = m.se[7:0]; }
        // index
        { hdr.s[3].a = 1; }  // !
        { hdr.s[-1].a = 1; }  // !
        { m.x = hdr.s[5].a; }  // !
        { m.x = hdr.s[m.f].a; }  // !
        { m.x = hdr.s[m.nt].a; }  // !
        { m.x = hdr.s[m.e].a; }  // !
        { m.x = hdr.h[0]; }  // !
        { m.x = m.x[0]; }  // !
        { m.x = m.t[m.x]; }  // !
        { m.x = m.t[2]; }  // !
        { m.x = m.t[-1]; }  // !
        { m.x = hdr.s[1 + 2].a; }  // !
        { m.x = hdr.s[hdr.s.size].a; }  // !
        { m.x = hdr.s["a"].a; }  // !
        { m.x = m.t[8s1]; }  // !
        { m.x = hdr.s[{1}].a; }  // !
        { m.x = hdr.u[0].a; }  // !
        { m.x = m.n[0]; }  // !
        { m.x = {1, 2}[2]; }  // !
        { m.x = hdr.s[SE.two + 1].a; }  // !
        { m.x = hdr.s.a; }  // !
        { m.x = hdr.s[0]; }  // !
        { hdr.s[2].a = 1; }
        { m.x = hdr.s[m.x].a; }
        { m.x = m.t[1 - 1]; }
        { m.x = hdr.s[SE.two].a; }
        { m.x = hdr.s[m.i].a; }
        { m.x = hdr.s[1 + 1].a; }
        { m.z = hdr.s.size; }
        { m.x = hdr.s[m.se].a; }
        // casts
        { m.i = (int<8>) m.y; }  // !
        { m.y = (bit<16>) m.i; }  // !
        { m.x = (bit<8>) m.f; }  // !
        { m.f = (bool) m.x; }  // !
        { m.f = (bool) 2; }  // !
        { m.f = (bool) -1; }  // !
        { m.f = (bool) 8w1; }  // !
        { m.f = (bool) 1s1; }  // !
        { m.i = (int<1>) m.f; }  // !
        { m.e = (E) 1; }  // !
        { m.e = (E) 0; }  // !
        { m.x = (bit<8>) m.e; }  // !
        { m.err = (error) 1; }  // !
        { m.x = (bit<8>) m.err; }  // !
        { m.n = (In) m.x; }  // !
        { m.n = (In) hdr.h; }  // !
        { hdr.h = (h_t) m.n; }  // !
        { hdr.h = (h_t) 16w3; }  // !
        { m.x = (bit<8>) hdr.h; }  // !
        { m.vb = (varbit<64>) m.l; }  // !
        { m.l = (bit<48>) m.vb; }  // !
        { m.n = (In) {1}; }  // !
        { m.n = (In) {p = 1}; }  // !
        { m.n = (In) {p = 1, r = 2}; }  // !
        { m.x = (string) "a"; }  // !
        { m.x = (void) m.x; }  // !
        { m.x = (I) m.x; }  // !
        { m.x = (packet_in) m.x; }  // !
        { m.x = (int) m.x + m.x; }  // !
        { m.se = (SE) m.y; }  // !
        { m.se = (SE) m.f; }  // !
        { m.e = (E) m.se; }  // !
        { m.y = (bit<16>) m.nt; }  // !
        { m.nt = (NT) m.f; }  // !
        { hdr.u = (u_t) hdr.h; }  // !
        { hdr.h = (h_t) {#} + 1; }  // !
        { m.x = (bit<8>) {#}; }  // !
        { m.n = (In) {#}; }  // !
        { m.t = (tuple<bit<8>, bool>) m.n; }  // !
        { m.x = (bit<8>) {1}; }  // !
        { m.x = (bit<8>) true; }  // !
        { m.x = (bit<8>) I; }  // !
        { m.x = (bit<8>) "a"; }  // !
        { m.i = (int<8>) 16w3; }  // !
        { m.f = (bool) m.i; }  // !
        { hdr.s = (h_t[3]) hdr.h; }  // !
        { hdr.s = (h_t[3]) {{1, 2}}; }  // !
        { hdr.s = (h_t[2]) {{1, 2}, {1, 2}}; }  // !
        { m.x = (list<bit<8>>) {1}; }  // !
        { m.f = (bool) 1; }
        { m.f = (bool) m.x[0:0]; }
        { m.x = (bit<8>)(bit<1>) m.f; }
        { m.se = (SE) m.x; }
        { m.se = (SE) 3; }
        { m.nt = (NT) m.x; }
        { m.x = (bit<8>) m.nt; }
        { m.n = (In) {q = 1, p = 2}; }
        { hdr.h = (h_t) {#}; }
        { hdr.u = (u_t) {#}; }
        { m.y = (bit<16>) m.se; }
        { m.n = (In) m.n; }
        { m.e = (E) m.e; }
        { m.x = (bit<8>) 300; }
        { m.se = (SE)(SE.one + 1); }
        { hdr.s = (h_t[3]) {{1, 2}, ...}; }
        { m.y = (bit<16>)(bit<8>) m.nt; }
        // struct exprs
        { m.n = {p = 1, p = 1, q = 2}; }  // !
        { m.n = {p = 1}; }  // !
        { m.n = {p = 1, z = 2}; }  // !
        { m.n = {1}; }  // !
        { m.n = {1, 2, 3}; }  // !
        { m.n = {p = true, q = 1}; }  // !
        { f({p = 1, q = 1}); }  // !
        { m.x = {p = 1}.p; }  // !
        { m.n = {p = {1}, q = 1}; }  // !
        { f({#}); }  // !
        { f(...); }  // !
        { m.f = {p = 1, q = 2} == {p = 1, q = 2}; }  // !
        { m.f = {#} == {#}; }  // !
        { m.f = hdr.h == ...; }  // !
        { if (...) {} }  // !
        { m.x = ... + 1; }  // !
        { m.x = {...}; }  // !
        { m.f = m.n == {#}; }  // !
        { m.x = {#}.a; }  // !
        { hdr.s = {#}; }  // !
        { hdr.u = {hdr.h, hdr.w}; }  // !
        { hdr.u = {h = hdr.h}; }  // !
        { hdr.s = {hdr.h, hdr.h, hdr.w}; }  // !
        { hdr.s = {hdr.h, hdr.h}; }  // !
        { hdr.s = {1, 2, 3}; }  // !
        { m.n = { }; }  // !
        { m.n = {q = 1, p = 2}; }
        { m.n = {p = 1, ...}; }
        { m.n = ...; }
        { m.n = {...}; }
        { f((In) {p = 1, q = 1}); }
        { m.f = m.n == {p = 1, q = 2}; }
        { m.f = hdr.h == {#}; }
        { m.x = ((In){p = 1, q = 2}).p; }
        { hdr.s = {hdr.h, hdr.h, {#}}; }
        { hdr.s = {{1, 2}, ...}; }
        { hdr.h = {#}; }
        { m.n = {1, 2,}; }
     }
}
control Eg(inout H hdr, inout M m, inout standard_metadata_t sm) {  apply {  } }
control K(inout H hdr, inout M m) {  apply {  } }
control D(packet_out p, in H hdr) {  apply { p.emit(hdr.h);  } }

V1Switch(P(), V(), I(), Eg(), K(), D()) main;
