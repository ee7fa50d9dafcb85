#include <core.p4>
#include <v1model.p4>
enum bit<8> E { A = 1, B }
