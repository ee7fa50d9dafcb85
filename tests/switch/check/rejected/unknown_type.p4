#include <core.p4>
#include <v1model.p4>
header h_t { bti<8> a; }
struct S { h_tt h; }
