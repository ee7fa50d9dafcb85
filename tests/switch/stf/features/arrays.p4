// Arrays: of numbers in metadata and headers, of structs, and of extern instances.
#include <core.p4>
#include <v1model.p4>
header info_t { bit<8> op; bit<8> at; bit<8> value; }
header list_t { bit<8>[4] item; bit<4>[2] half; }
struct pair_t { bit<8> x; bit<8>[2] y; }
struct headers_t { info_t i; list_t l; }
struct meta_t { bit<8>[4] numbers; pair_t[2] pairs; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.i);
        p.extract(h.l);
        m.numbers[h.i.at] = h.i.value;
        transition accept;
    }
}
#define HAS_INGRESS
control Count(inout bit<8> value, in bit<8> at)(counter[2] packets) {
    apply {
        packets[at].count(0);
        value = value + 1;
    }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter[2](1, CounterType.packets) packets;
    register<bit<8>>[3](4) cells;
    register<bit<8>>[2][2](1) grid;
    Count(packets) count;
    action put(bit<8> at, bit<8> value) { h.l.item[at] = value; }
    table items {
        key = { h.l.item[1]: exact; m.numbers[h.i.at]: exact; }
        actions = { put; NoAction; }
        default_action = NoAction;
    }
    apply {
        s.egress_spec = 1;
        bit<8> seen;
        switch (h.i.op) {
            1: { h.l.item[h.i.at] = h.i.value; }
            2: { h.i.value = h.l.item[h.i.at]; }
            3: { m.pairs[1].y[h.i.at] = 7; m.pairs[0] = m.pairs[1]; h.i.value = m.pairs[0].y[1]; }
            4: { h.l.half = { 1, 2 }; h.l.item = { 9, 8, ... }; }
            5: { count.apply(h.i.value, h.i.at); }
            6: { cells[h.i.at].read(seen, 1); cells[h.i.at].write(1, seen + 1); h.i.value = seen; }
            7: { cells[2].write(3, h.i.value); cells[2].read(h.i.value, 3); }
            8: {
                grid[h.i.at][1].write(0, h.i.value);
                grid[1][1].read(seen, 0);
                h.i.value = seen;
            }
            9: { items.apply(); }
        }
    }
}
#include "../rest.p4h"
