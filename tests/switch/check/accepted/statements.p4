// Loops, switches, exits and returns.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
enum E1 { A, B }
bit<8> pick(in bit<8> x) {
    if (x == 1) { return 1; }
    switch (x) { 2: 3: { return 2; } default: { return 3; } }
}
struct H { eth_t eth; h_t h; h_t g; h_t[3] st; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.eth);
        p.extract(hdr.h);
        p.extract(hdr.g);
        p.extract(hdr.st.next);
        transition accept;
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action leave() { m.x = 1; if (m.f) { return; } exit; }
    action stay() { }
    table t { key = { m.x : exact; } actions = { leave; stay; } default_action = stay; }
    apply {
        for (bit<8> i = 0; i < 5; i = i + 1) { if (i == 3) { break; } if (i == 2) { continue; } m.x = m.x + i; }
        for (bit<8> i = 0, bit<8> j = 9; i < j; i += 1, j -= 1) { m.x += j; }
        for (bit<8> i in 0 .. 255) { m.x += i; }
        for (bit<8> i in m.x .. hdr.h.a) { for (bit<8> j in 1 .. i) { if (j == i) { continue; } m.x ^= j; } }
        for (h_t h in hdr.st) { m.x += h.a; }
        for (bit<8> i in { 1, 2, m.x }) { m.x += i; }
        for (bit<8> i in (list<bit<8>>){ 1, 2 }) { m.x += i; }
        switch (t.apply().action_run) { leave: { m.x = 1; } default: { } }
        switch (sm.parser_error) { error.NoError: { } default: { m.x = 1; } }
        E1 e = E1.B; switch (e) { E1.A: { } E1.B: { m.x = pick(m.x); } }
        if (t.apply().hit || t.apply().miss && m.f) { return; } else { ; }
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
