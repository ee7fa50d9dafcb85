// next, last, lastIndex, push_front, pop_front, size, variable index, overflow.
#include <core.p4>
#include <v1model.p4>
header item_t { bit<7> v; bit<1> bos; }
header info_t { bit<8> op; bit<8> a; bit<8> b; }
struct headers_t { info_t i; item_t[3] s; }
struct meta_t { bit<32> last; bit<7> lastv; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.i); transition items; }
    state items {
        p.extract(h.s.next);
        m.last = h.s.lastIndex;
        m.lastv = h.s.last.v;
        transition select(h.s.last.bos) { 1: accept; default: items; }
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.i.a = (bit<8>)m.last;
        h.i.b = (bit<8>)m.lastv;
        if (s.parser_error == error.StackOutOfBounds) { h.i.a = 0xff; }
        switch (h.i.op) {
            1: { h.s.push_front(1); h.s[0] = {0x11, 0}; }
            2: { h.s.pop_front(1); }
            3: { h.s.push_front(2); }
            4: { h.s.pop_front(5); }
            5: { h.i.b = (bit<8>)h.s.size; }
            6: { h.s[m.last].v = 0x7f; }
            7: { h.s[1].setInvalid(); }
            8: { h.s[1] = h.s[0]; }
        }
    }
}
#include "../rest.p4h"
