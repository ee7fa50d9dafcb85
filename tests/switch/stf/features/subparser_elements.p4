// A sub-parser is given elements of a stack and fields of a header: it writes what was named when
// it was called, also where it rejects.
#include "../first.p4h"
header item_t { bit<8> v; }
struct headers_t { data_t d; item_t[3] items; }
#define HAS_PARSER
parser Item(packet_in p, out item_t item, out bit<8> seen, inout bit<8> calls) {
    state start {
        calls = calls + 1;
        p.extract(item);
        seen = item.v;
        transition select(item.v) { 1: reject; 2: wrong; 3 .. 9: accept; }
    }
    state wrong { seen = 0x55; verify(false, error.HeaderTooShort); transition accept; }
}
parser Outer(packet_in p, inout item_t item, out bit<8> seen, inout bit<8> calls) {
    Item() inner;
    state start {
        inner.apply(p, item, seen, calls);
        calls = calls + 0x10;
        transition accept;
    }
}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Item() one;
    Outer() two;
    state start {
        p.extract(h.d);
        transition select(h.d.op) { 0: computed; 1: next; 2: nested; 3: full; }
    }
    state computed { one.apply(p, h.items[h.d.x], h.d.y, h.d.z); transition accept; }
    state next { one.apply(p, h.items.next, h.d.y, h.d.z); p.extract(h.items.next); transition accept; }
    state nested { two.apply(p, h.items[h.d.x], h.d.y, h.d.z); transition accept; }
    state full {
        p.extract(h.items.next);
        p.extract(h.items.next);
        p.extract(h.items.next);
        one.apply(p, h.items.next, h.d.y, h.d.z);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.d.w = h.items[0].isValid() ? h.d.w | 1 : h.d.w;
        h.d.w = h.items[1].isValid() ? h.d.w | 2 : h.d.w;
        h.d.w = h.items[2].isValid() ? h.d.w | 4 : h.d.w;
        if (s.parser_error == error.HeaderTooShort) { h.d.w[15:8] = 1; }
        if (s.parser_error == error.NoMatch) { h.d.w[15:8] = 2; }
        if (s.parser_error == error.PacketTooShort) { h.d.w[15:8] = 3; }
        if (s.parser_error == error.StackOutOfBounds) { h.d.w[15:8] = 4; }
    }
}
#include "../rest.p4h"
