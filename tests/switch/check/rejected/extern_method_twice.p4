#include <core.p4>
#include <v1model.p4>
extern Sum {
    Sum(bit<8> start);
    Sum(bit<16> start);
    void add(in bit<8> x);
    void add(in bit<8> x, in bit<8> y);
    bit<8> add(in bit<8> x);
}
