#include <core.p4>
T first<T>(in tuple<T, T> t) { return t[0]; }
control C(inout bit<8> a, inout bit<16> b) { apply { a = first({ a, b }); } }
