#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> x; }
header b_t { a_t a; }
