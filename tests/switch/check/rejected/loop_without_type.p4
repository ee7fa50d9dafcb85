#include <core.p4>
bit<8> f(in bit<8> n) {
    bit<8> i;
    for (i in 1 .. n) { }
    return i;
}
