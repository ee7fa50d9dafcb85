#include <core.p4>
header h_t { bit<8> x; }
header v_t { varbit<8>[2] x; }
struct S {
    int[4] a;
    tuple<bit<8>>[2] b;
    error[2] c;
    bit<8>[-1] d;
    bit<8>[5000] e;
    bit<8>[2] f;
}
bit<8> member(in S s) {
    return s.f.size + s.f[2];
}
bit<8> assigned(in bit<8>[2] a) {
    bit<8>[3] b = a;
    bit<8>[2] c = { 1, 2, 3 };
    c.next = 1;
    return c[true];
}
