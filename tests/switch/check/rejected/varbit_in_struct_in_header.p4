#include <core.p4>
#include <v1model.p4>
struct options_t { varbit<32> v; }
header h_t { bit<8> a; options_t options; }
