// Operands: every line marked with ! has an error, no other line has one.
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

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); p.extract(hdr.w);  transition accept; }
    
}
control V(inout H hdr, inout M m) {  apply {  } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply { 
        // width mismatch
        { m.x = m.x + m.y; }  // !
        { m.x = m.x + m.i; }  // !
        { m.i = (int<8>) m.y; }  // !
        { m.x = m.y; }  // !
        { m.y = m.x; }  // !
        { m.i = m.x; }  // !
        { m.x = m.i; }  // !
        { m.f = m.x == m.y; }  // !
        { m.f = m.x < m.i; }  // !
        { m.f = m.x == m.i; }  // !
        { m.x = m.f; }  // !
        { m.f = m.x; }  // !
        { m.x = m.x & m.y; }  // !
        { m.x = m.x |+| m.y; }  // !
        { m.f = 8w1 == 9w1; }  // !
        { m.x = 8w1 + 9w1; }  // !
        { m.x += m.y; }  // !
        { m.x |= m.i; }  // !
        { m.x = m.x * 16w2; }  // !
        { m.x = true ? m.x : m.y; }  // !
        { m.x = m.y[8:0]; }  // !
        { m.x[3:0] = m.x; }  // !
        { m.x = hdr.s.size; }  // !
        { m.x = m.x ++ m.x; }  // !
        { m.x <<= m.i; }  // !
        { m.x = 9w3; }  // !
        { m.i = -8w3; }  // !
        { m.x = -8s3; }  // !
        { m.x = m.nt; }  // !
        { m.nt = m.x; }  // !
        { m.nt = 3; }
        { m.se = m.x; }  // !
        { m.se = 1; }  // !
        { m.e = 1; }  // !
        { m.se = SE.one + 1; }  // !
        { m.se = SE.one + SE.two; }  // !
        { m.x = m.e; }  // !
        { m.f = m.e == 1; }  // !
        { m.f = m.nt == 1; }  // !
        { m.f = m.nt == m.x; }  // !
        { m.nt = m.nt + m.nt; }  // !
        { m.nt = -m.nt; }  // !
        { m.nt += 1; }  // !
        { m.x = m.nt[3:0]; }  // !
        { m.nt[3:0] = 1; }  // !
        { m.f = m.nt < m.nt; }  // !
        { m.x = m.x << m.nt; }  // !
        { m.x = m.nt ++ m.nt; }  // !
        { m.f = !m.nt; }  // !
        { m.f = m.err == m.e; }  // !
        { m.f = m.err < m.err; }  // !
        { m.f = m.e < m.e; }  // !
        { m.e = m.e + m.e; }  // !
        { m.f = m.f < m.f; }  // !
        { m.f = m.f + m.f; }  // !
        { m.f = m.f & m.f; }  // !
        { m.f = ~m.f; }  // !
        { m.f = -m.f; }  // !
        { m.x = !m.x; }  // !
        { m.f = m.x && m.f; }  // !
        { m.f = m.f || 1; }  // !
        { m.f = 1 && 1; }  // !
        { m.f = !0; }  // !
        { m.x = m.f ++ m.f; }  // !
        { m.f = m.f << 1; }  // !
        { m.f ^= true; }  // !
        { m.f = m.f ^ true; }  // !
        { m.f = hdr.h == hdr.w; }  // !
        { m.f = hdr.h == 1; }  // !
        { m.f = hdr.h == {1}; }  // !
        { m.f = hdr.h == {1, true}; }  // !
        { m.f = hdr.h < hdr.g; }  // !
        { m.f = hdr.s == hdr.h; }  // !
        { m.f = m.n == hdr.h; }  // !
        { m.f = hdr == m; }  // !
        { m.f = m.t == {1, 2}; }  // !
        { hdr.h = hdr.w; }  // !
        { hdr.s = hdr.h; }  // !
        { m.n = hdr.h; }  // !
        { m.t = m.n; }  // !
        { m.vb = 8w3; }  // !
        { m.f = m.vb == 8w3; }  // !
        { m.vb = m.vb + m.vb; }  // !
        { m.x = m.vb[3:0]; }  // !
        { m.x = (bit<8>) m.vb; }  // !
        { m.vb = m.vb ++ m.vb; }  // !
        { hdr.v.v = m.x; }  // !
        { m.f = I == I; }  // !
        { m.f = sm == m; }  // !
        { m.f = {1, 2} == {1, 2, 3}; }  // !
        { m.f = "a" == "a"; }  // !
        { m.f = exact == ternary ? 1 : 0; }  // !
        { m.x = (bit<8>) m.i; }
        { m.i = (int<8>)(bit<8>) m.y; }
        { m.x = m.x + 1; }
        { m.f = m.x == 3; }
        { m.x = SE.one; }
        { m.x = m.se + 1; }
        { m.f = m.se == SE.one; }
        { m.f = m.se == 1; }
        { m.nt = (NT) 3; }
        { m.f = m.nt == (NT) 3; }
        { m.f = m.e == E.A; }
        { m.f = hdr.h == hdr.g; }
        { m.f = hdr.h == {1, 2}; }
        { m.f = m.t == {1, true}; }
        { m.y = m.x ++ m.x; }
        { m.x = m.y[7:0]; }
        { m.vb = m.vb; }
        { m.f = m.vb == m.vb; }
        { m.x <<= 2; }
        { m.i = m.i >> 9; }
        { m.f = m.x < SE.two; }
        { m.f = m.n == (In) {1, 2}; }
        { m.x = true ? m.x : 2; }
        { m.f = m.f != true; }
        // shift
        { m.x = m.x << m.i; }  // !
        { m.x = m.x << -1; }  // !
        { m.x = m.x >> (0 - 2); }  // !
        { m.x = 1 << m.x; }  // !
        { m.x = m.x << 1s1; }  // !
        { m.x = m.x << true; }  // !
        { m.x = m.x << m.f; }  // !
        { m.x = m.x << {1}; }  // !
        { m.x = 8w1 << E.A; }  // !
        { m.x = m.vb << 1; }  // !
        { m.x = m.x << "a"; }  // !
        { m.x >>= -1; }  // !
        { m.x = 1 >> m.x; }  // !
        { m.x = m.x << (int<8>) m.x; }  // !
        { m.x = m.e << 1; }  // !
        { m.x = hdr.h << 1; }  // !
        { m.x = m.x << (-1 + 0); }  // !
        { m.x = m.x << 1024; }
        { m.x = m.x << m.z; }
        { m.x = (bit<8>) (1 << 3); }
        { m.x = m.x << SE.one; }
        { m.x = m.se << 3; }
        { m.x = m.x >> 8w3; }
        { m.i = m.i << m.x; }
        // int ops
        { m.x = ~1; }  // !
        { m.x = 5 & -3; }  // !
        { m.x = 5 | -3; }  // !
        { m.x = 5 ^ -3; }  // !
        { m.x = 5 |+| 3; }  // !
        { m.x = 5 |-| 3; }  // !
        { m.x = 5 / 0; }  // !
        { m.x = 5 % 0; }  // !
        { m.x = -5 / 3; }  // !
        { m.x = 5 / -3; }  // !
        { m.x = 5 % -3; }  // !
        { m.x = -5 % 3; }  // !
        { m.x = m.x / 0; }  // !
        { m.x = m.x % 8w0; }  // !
        { m.x /= 0; }  // !
        { m.x %= 0; }  // !
        { m.i = m.i / 2; }  // !
        { m.i = m.i % 2; }  // !
        { m.i = m.i / -2; }  // !
        { m.y = 1 ++ 8w1; }  // !
        { m.x = 1 ++ 1; }  // !
        { const bit<8> k = 1 / (3 - 3); m.x = k; }  // !
        { m.x = 5 / (SE.one - SE.one); }  // !
        { m.x = 8s6 / 8s3; }  // !
        { m.x = 8w5 / -1; }  // !
        { m.x = m.x / (8w3 - 3); }  // !
        { m.x = 5 / (1 > 2 ? 1 : 0); }  // !
        { m.x = 5 / 3; }
        { m.x = 8w5 / 3; }
        { m.x = m.x / 2; }
        { m.x = m.x % 2; }
        { m.x = 5 - 3 * 2 + 5; }
        // ternary
        { m.x = m.f ? 1 : 2; }  // !
        { m.x = m.x ? m.x : m.x; }  // !
        { m.x = m.f ? m.x : m.i; }  // !
        { m.x = m.f ? m.x : true; }  // !
        { m.e = m.f ? E.A : 1; }  // !
        { hdr.h = m.f ? hdr.h : hdr.w; }  // !
        { m.x = 1 ? m.x : m.x; }  // !
        { m.x = m.f ? m.nt : m.x; }  // !
        { m.x = m.f ? (m.f ? 1 : 2) : 3; }  // !
        { m.x = "a" ? 1 : 2; }  // !
        { log_msg(m.f ? "a" : "b"); }  // !
        { m.x = true ? 1 : 2; }
        { m.x = m.f ? 8w1 : 2; }
        { m.x = m.f ? m.se : m.x; }
        { hdr.h = m.f ? hdr.h : hdr.g; }
        { m.f = m.f ? true : false; }
     }
}
control Eg(inout H hdr, inout M m, inout standard_metadata_t sm) {  apply {  } }
control K(inout H hdr, inout M m) {  apply {  } }
control D(packet_out p, in H hdr) {  apply { p.emit(hdr.h);  } }

V1Switch(P(), V(), I(), Eg(), K(), D()) main;
