#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct S { bit<8> p; bit<16> q; }
struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bool f; }
const S s = { ..., 2 };
