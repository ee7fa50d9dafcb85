#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
header v_t { bit<8> n; varbit<64> v; }
struct H { h_t h; h_t[3] s; v_t v; }
struct M { bit<8> x; bool f; int<8> n; }
bit<8> f0(in bit<8> x) { return x; }
bit<8> f1(in bit<8> x) { return f0(x) + f0(x); }
bit<8> f2(in bit<8> x) { return f1(x) + f1(x); }
bit<8> f3(in bit<8> x) { return f2(x) + f2(x); }
bit<8> f4(in bit<8> x) { return f3(x) + f3(x); }
bit<8> f5(in bit<8> x) { return f4(x) + f4(x); }
bit<8> f6(in bit<8> x) { return f5(x) + f5(x); }
bit<8> f7(in bit<8> x) { return f6(x) + f6(x); }
bit<8> f8(in bit<8> x) { return f7(x) + f7(x); }
bit<8> f9(in bit<8> x) { return f8(x) + f8(x); }
bit<8> f10(in bit<8> x) { return f9(x) + f9(x); }
bit<8> f11(in bit<8> x) { return f10(x) + f10(x); }
bit<8> f12(in bit<8> x) { return f11(x) + f11(x); }
bit<8> f13(in bit<8> x) { return f12(x) + f12(x); }
bit<8> f14(in bit<8> x) { return f13(x) + f13(x); }
bit<8> f15(in bit<8> x) { return f14(x) + f14(x); }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        m.x = f15(m.x);
    }
}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout H hdr, inout M m) { apply { } }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
