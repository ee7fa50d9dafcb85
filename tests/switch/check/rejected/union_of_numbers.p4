#include <core.p4>
#include <v1model.p4>
header_union u_t { bit<8> a; }
