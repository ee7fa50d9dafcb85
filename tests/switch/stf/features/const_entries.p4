// Entries in the source: in order for ternary, by length for lpm, whole-key default, masks.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action z(bit<8> v) { h.d.z = v; }
    action none() { h.d.z = 0xff; }
    table first {
        key = { h.d.x : ternary; h.d.y : exact; }
        actions = { z; none; }
        default_action = none;
        const entries = {
            (0x10 &&& 0xf0, 1) : z(1);
            (0x11, 1) : z(2);
            (0x20 &&& 0xf0, 1) : z(3);
            (_, 2) : z(4);
            (default, 3) : none;
        }
    }
    table longest {
        key = { h.d.w : lpm; }
        actions = { z; none; }
        const entries = {
            0x1200 &&& 0xff00 : z(5);
            0x1234 : z(6);
            _ : z(7);
        }
    }
    table pri {
        key = { h.d.x : range; h.d.y : ternary; }
        actions = { z; none; }
        largest_priority_wins = true;
        @noWarn("entries_out_of_priority_order") entries = {
            const priority = 10 : (1 .. 9, _) : z(8);
            priority = 30 : (5 .. 20, 0 &&& 0x80) : z(9);
            (7, _) : z(10);
        }
    }
    table small {
        key = { h.d.x : ternary; }
        actions = { z; }
        largest_priority_wins = false;
        priority_delta = 10;
        @noWarn("entries_out_of_priority_order") entries = {
            priority = 20 : 0x0 &&& 0xf0 : z(11);     // 20
            0x5 : z(12);                              // 30
            priority = 5 : 0x6 : z(13);
            0x7 : z(14);                              // 15
        }
    }
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0: { first.apply(); } 1: { longest.apply(); } 2: { pri.apply(); } 3: { small.apply(); }
        }
    }
}
#include "../rest.p4h"
