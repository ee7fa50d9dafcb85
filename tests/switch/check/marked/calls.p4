// Calls and their arguments: every line marked with ! has an error, no other line has one.
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
bit<8> f(in bit<8> a) { return a; } void g() { } void h<T>(in T a) { } void k2<T>(in T a, in T b) { }
struct G<T> { T f; } struct G2<T> { T f; } header GH<T> { T f; } header_union GU<T> { T f; } void f5<T>(in T a) { } T f2<T>(in T a) { return a; } void f3<T>() { } void f4<T>(in T a, in T b) { }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); p.extract(hdr.w);  transition accept; }
    
}
control V(inout H hdr, inout M m) {  apply {  } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(3) r;
    apply { 
        // calls
        { m.x = g(); }  // !
        { f(); }  // !
        { m.x = f(1) + g(); }  // !
        { g(g()); }  // !
        { m.x(); }  // !
        { f<bit<8>>(1); }  // !
        { h<bit<8>>(); }  // !
        { h(); }  // !
        { h<bit<8>, bit<8>>(1); }  // !
        { h<E>(1); }  // !
        { h<bool>(m.x); }  // !
        { k2(m.x, m.y); }  // !
        { k2({1}, m.x); }  // !
        { h(1); }  // !
        { I.apply(hdr, m, sm); }  // !
        { P.apply(); }  // !
        { Eg.apply(hdr, m); }  // !
        { E.apply(); }  // !
        { m.apply(); }  // !
        { m.x = E(1); }  // !
        { NoAction(1); }  // !
        { NoAction.apply(); }  // !
        { m.x = NoAction(); }  // !
        { Eg(); }  // !
        { hdr.h.isValid(1); }  // !
        { hdr.h.setValid(true); }  // !
        { m.x = hdr.h.setValid(); }  // !
        { hdr.isValid(); }  // !
        { m.n.setValid(); }  // !
        { hdr.s.isValid(); }  // !
        { hdr.u.setValid(); }  // !
        { hdr.u.setInvalid(); }  // !
        { hdr.s.push_front(); }  // !
        { hdr.s.push_front(m.x); }  // !
        { hdr.s.push_front(-1); }  // !
        { hdr.s.push_front(true); }  // !
        { hdr.s.push_front(1, 2); }  // !
        { hdr.h.push_front(1); }  // !
        { hdr.s.pop_front(m.z); }  // !
        { m.f = hdr.s.push_front(1); }  // !
        { hdr.s.next.a = 1; }  // !
        { m.x = hdr.s.last.a; }  // !
        { m.z = hdr.s.lastIndex; }  // !
        { hdr.s.next.setValid(); }  // !
        { hdr.s.size = 3; }  // !
        { hdr.s.nextIndex = 3; }  // !
        { m.f = hdr.h.isValid; }  // !
        { m.z = m.e.minSizeInBits(); }  // !
        { m.z = hdr.h.minSizeInBits(1); }  // !
        { m.z = m.err.minSizeInBits(); }  // !
        { m.z = I.minSizeInBits(); }  // !
        { m.z = "a".minSizeInBits(); }  // !
        { m.z = m.f.minSize(); }  // !
        { m.z = 5.minSizeInBits(); }  // !
        { m.z = r.minSizeInBits(); }  // !
        { m.z = m.minSizeInBits(); }  // !
        { m.x = f(1); }
        { h<bit<8>>(1); }
        { h(8w1); }
        { h({8w1, true}); }
        { k2(m.x, m.x); }
        { NoAction(); }
        { f(1); }
        { hdr.u.isValid(); }
        { hdr.u.h.setValid(); }
        { hdr.s.push_front(1); }
        { hdr.s[m.x].setValid(); }
        { m.z = hdr.h.minSizeInBits(); }
        { m.z = m.x.maxSizeInBytes(); }
        { m.z = hdr.v.maxSizeInBits(); }
        { m.z = m.se.minSizeInBits(); }
        { m.z = hdr.s[9 - 8].minSizeInBits(); }
        { m.z = h_t.minSizeInBits(); }
        // generics
        { G<bit<8>> g1 = {true}; m.x = g1.f; }  // !
        { G g1; }  // !
        { G<> g1; }  // !
        { G<bit<8>, bit<8>> g1; }  // !
        { G<nope> g1; }  // !
        { G<E> g1 = {1}; m.e = g1.f; }  // !
        { G<bit<8>> g1; G<bit<16>> g2; g1 = g2; }  // !
        { G<bit<8>> g1; G2<bit<8>> g2; g1 = g2; }  // !
        { G<bit<8>> g1 = {16w3}; }  // !
        { f<bit<8>>(true); }  // !
        { f(m.x, m.y); }  // !
        { f({#}); }  // !
        { f<_>(m.x, 3); }  // !
        { f2(1); }  // !
        { m.x = f2<bool>(true); }  // !
        { m.x = f2(m.f); }  // !
        { f3(); }  // !
        { f3<bit<8>, bit<8>>(); }  // !
        { G<int> g; }  // !
        { GH<E> g; }  // !
        { GH<h_t> g; }  // !
        { GH<bit<8>>[2] g; g = {{1}, {true}}; }  // !
        { GU<bit<8>> g; }  // !
        { GH<tuple<bit<8>>> g; }  // !
        { E<bit<8>> g; }  // !
        { h_t<bit<8>> g; }  // !
        { f4(hdr.h, hdr.w); }  // !
        { f4(1, true); }  // !
        { GH<In> q; q.f.nope = 1; }  // !
        { G<bit<8>> g1 = {1}; m.x = g1.f; }
        { G<E> g1 = {E.A}; }
        { m.x = f2(m.x); }
        { m.x = f2<bit<8>>(1); }
        { GH<In> g; g = {{1, 2}}; }
        { GU<h_t> g; }
        { GH<bit<8>>[2] g; }
        { f4(1, m.x); }
        { f4(hdr.h, {1, 2}); }
     }
}
control Eg(inout H hdr, inout M m, inout standard_metadata_t sm) {  apply {  } }
control K(inout H hdr, inout M m) {  apply {  } }
control D(packet_out p, in H hdr) {  apply { p.emit(hdr.h);  } }

V1Switch(P(), V(), I(), Eg(), K(), D()) main;
