#include <core.p4>
#include <v1model.p4>
const bool B = true;
header h_t { bit<B> a; }
