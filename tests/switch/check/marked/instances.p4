// What only an instance settles: every line marked with ! has an error, no other line has one.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bit<8> y; }
control Three(inout H hdr, inout M m)(int n, bit<8> i) {
    action set(h_t data) { m.x = data.a; }
    table sized {
        actions = { NoAction; }
        size = n - 9;  // !
    }
    table given {
        key = { m.x : exact; }
        actions = { set; }
        const entries = {
            1 : set({1, 2});  // !
        }
    }
    table counted_down {
        key = { m.x : ternary; }
        actions = { NoAction; }
        priority_delta = 2;
        entries = {
            priority = 1 : 1 : NoAction;
            2 : NoAction;  // !
        }
    }
    apply {
        m.x = hdr.s[n].a;  // !
        m.x = hdr.s[n - 1].a;
        hdr.s[i + 1].a = 1;  // !
        m.x = m.x << (n - 5);  // !
        m.x = m.x << n;
        m.x = 6 / (n - 3);  // !
        m.x = 6 / (n - 2);
        m.y %= i - 3;  // !
        if (n > 3) { m.x = 6 / (n - 3); }
        sized.apply();
        given.apply();
        counted_down.apply();
    }
}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); p.extract(hdr.s.next); transition accept; }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    Three(3, 3) three;
    action a(@id(1) bit<8> x,
             @id(1) bit<8> y) { m.x = x + y; }
    @id(5) register<bit<8>>(3) r;
    @id(5) counter(3, CounterType.bytes) c;
    @id(5) table one { actions = { NoAction; } }
    @id(0x02000005) table two { actions = { NoAction; } }  // !
    apply { three.apply(hdr, m); one.apply(); two.apply(); r.write(0, 1); c.count(0); a(1, 2); }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
