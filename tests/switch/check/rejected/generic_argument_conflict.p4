#include <core.p4>
#include <v1model.p4>
T pick<T>(in T a, in T b) { return a; }
control c(inout bit<8> x, inout bit<16> y) { apply { x = pick(x, y); } }
