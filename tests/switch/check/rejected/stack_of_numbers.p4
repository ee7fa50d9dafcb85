#include <core.p4>
#include <v1model.p4>
struct S { bit<8>[4] a; }
