// Numbers within their bounds, both included, of each instance's own.
#include "first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
INGRESS(ingress) {
    Random<bit<8>>(4, 7) few;
    Random<bit<16>>(0xfff0, 0xffff) high;
    Random<int<8>>(-2, 1) signed;
    Random<bit<8>>(5, 5) one;
    apply {
        send_to_port(o, (PortId_t) 1);
        h.d.x = few.read() & 0xfc;
        h.d.w = high.read() & 0xfff0;
        int<8> drawn = signed.read();
        h.d.y = drawn >= -2 && drawn <= 1 ? 8w1 : 0;
        h.d.z = one.read();
    }
}
#include "rest.p4h"
