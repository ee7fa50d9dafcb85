#include <core.p4>
#include <v1model.p4>
type bit<9> Port;
const Port P = 9w3;
