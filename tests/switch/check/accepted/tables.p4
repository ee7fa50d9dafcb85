// Keys, entries, priorities, properties, names.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
const bit<8> K = 3;
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
@noWarn("unreachable") @noWarn("always") control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    direct_counter(CounterType.bytes) dc;
    direct_meter<bit<2>>(MeterType.packets) dm;
    action_profile(32) ap;
    action a(bit<8> k) { m.x = k; }
    action b() { }
    action bound(in h_t value, bit<8> k) { m.x = value.a + k; }
    action counted() { dc.count(); dm.read(m.x[1:0]); }
    @name("renamed") table all_kinds {
        key = {
            m.x : exact; m.y : lpm; hdr.h.d : ternary; hdr.h.c : range; hdr.eth.type : optional;
            hdr.h.isValid() : exact; hdr.st[1].a & 0xF0 : exact; m.x[3:0] : exact; .K : exact;
            m.x + 1 : exact @name("sum"); sm.parser_error : exact; m.f : exact;
        }
        actions = { a; @tableonly b; @defaultonly NoAction; }
        default_action = NoAction();
        size = 16;
    }
    table constant {
        key = { m.x : ternary; m.y : lpm; }
        actions = { a; b; }
        const entries = {
            (1, 2) : a(5); (K, 0x100 &&& 0xff00) : b(); (2 &&& 6, _) : b; (_, default) : a(1); _ : b();
        }
    }
    table prioritised {
        key = { hdr.h.c : range; }
        actions = { a; b; }
        largest_priority_wins = false;
        priority_delta = 10;
        @noWarn("duplicate_priorities")
        entries = { const priority = 10: 1 .. 5 : a(1); 6 : b(); priority = (20 + K): _ : b(); }
    }
    table annotated {
        key = { m.x : ternary; }
        actions = { a; b; }
        const entries = { 1 : a(1) @priority(3); 2 &&& 2 : b() @priority(1); }
    }
    table direct { key = { m.x : exact; } actions = { counted; b; } counters = dc; meters = dm; default_action = b; }
    table profiled { key = { m.x : exact; } actions = { a; } implementation = ap; }
    table selected { key = { m.x : exact; m.y : selector; } actions = { a; } implementation = action_selector(HashAlgorithm.crc16, 32, 16); support_timeout = true; }
    table binding {
        key = { m.x : exact; }
        actions = { bound((h_t) { a = m.x, b = 1, c = m.y, d = 2 }); }
        default_action = bound((h_t) { a = m.x, b = 1, c = m.y, d = 2 }, 5);
    }
    @hidden table keyless { actions = { b; } const default_action = b(); }
    table without_default { key = { m.x : exact; } actions = { b; } }
    @noWarn("unused") table spare { actions = { b; } }
    apply {
        all_kinds.apply(); constant.apply(); prioritised.apply(); annotated.apply(); direct.apply();
        profiled.apply(); selected.apply(); binding.apply(); keyless.apply();
        switch (without_default.apply().action_run) { NoAction: { m.x = 1; } b: { } }
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
