// Tables of every kind of match, with direct counters and meters, profiles and selectors.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8> small; bit<4> nibble; int<4> sign; bit<32> prefix; bit<48> mac; bit<16> port; int<16> range; bit<128> long;
    bit<72> tern; bool flag; bit<7> pad;
}
header out_t { bit<8> direct; bit<8> hash; bit<8> lpm; bit<8> tern; bit<8> range; bit<8> opt; bit<8> sel; bit<8> prof;
    bit<16> flow; bit<32> hits; bit<2> colour; bit<6> colours; bit<129> wide; int<9> signed; bit<1> zero; bit<5> pad; }
struct headers_t { key_t key; out_t o; }
struct meta_t { bit<32> hits; bit<2> colour; bit<3> meter; }

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.key); packet.extract(h.o); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) direct_count;
    direct_counter(CounterType.packets) hash_count;
    direct_counter(CounterType.bytes) direct_count2;
    direct_meter<bit<2>>(MeterType.packets) direct_meter_;
    direct_meter<bit<3>>(MeterType.bytes) tern_meter;
    counter(8, CounterType.bytes) seen;
    action_selector(HashAlgorithm.crc16, 64, 10) spread;
    action_profile(32) shared;

    action set_direct(bit<8> v) { h.o.direct = v; direct_count.count(); }
    action two(bit<8> v, bit<16> flow) { h.o.direct = v + 1; h.o.flow = flow; }
    action stop() { h.o.pad = 1; exit; }
    action set_hash(bit<8> v, int<9> n, bool b) { h.o.hash = v; h.o.signed = n; if (b) { h.o.zero = 1; } }
    action set_lpm(bit<8> v, bit<129> w) { h.o.lpm = v; h.o.wide = w; }
    action set_tern(bit<8> v) { h.o.tern = v; tern_meter.read(m.meter); }
    action set_range(bit<8> v) { h.o.range = v; }
    action set_opt(bit<8> v) { h.o.opt = v; }
    action set_sel(bit<8> v, bit<9> port) { h.o.sel = v; s.egress_spec = port; }
    action set_prof(bit<8> v) { h.o.prof = v; return; }
    action out_of_band(bit<8> v) { if (v > 128) { return; } h.o.prof = v; }

    table direct_t {
        key = { h.key.small : exact; h.key.nibble : exact; }
        actions = { set_direct; two; stop; NoAction; }
        default_action = two(7, 9);
        counters = direct_count;
    }
    table direct_signed { key = { h.key.sign : exact; h.key.flag : exact; } actions = { set_opt; } default_action = set_opt(3); }
    table hash_t {
        key = { h.key.mac : exact; h.key.port : exact; h.key.flag : exact; }
        actions = { set_hash; @defaultonly NoAction; }
        counters = hash_count;
        meters = direct_meter_;
        support_timeout = true;
    }
    table long_t { key = { h.key.long : exact; } actions = { set_hash; NoAction; } default_action = NoAction(); size = 64; }
    table lpm_t { key = { h.key.prefix : lpm; } actions = { set_lpm; NoAction; } default_action = NoAction(); }
    table lpm2_t { key = { h.key.small : exact; h.key.prefix : exact; h.key.long : lpm; } actions = { set_lpm; NoAction; } default_action = NoAction(); }
    table tern_t {
        key = { h.key.tern : ternary; h.key.small : exact; h.key.prefix : lpm; }
        actions = { set_tern; NoAction; }
        default_action = NoAction();
        meters = tern_meter;
    }
    table range_t {
        key = { h.key.range : range; h.key.port : range; h.key.tern : range; h.key.small : ternary; }
        actions = { set_range; NoAction; }
        default_action = NoAction();
    }
    table opt_t { key = { h.key.port : optional; h.key.small : optional; } actions = { set_opt; NoAction; } default_action = NoAction(); }
    table sel_t {
        key = { h.key.nibble : exact; h.key.prefix : selector; h.key.mac : selector; h.key.pad : selector; }
        actions = { set_sel; NoAction; }
        default_action = NoAction();
        implementation = spread;
    }
    table prof_t { key = { h.key.small : ternary; } actions = { set_prof; out_of_band; } default_action = set_prof(1); implementation = shared; counters = direct_count2; }
    action set_direct_2(bit<8> v) { h.o.flow[7:0] = v; }
    table empty_t { actions = { set_direct_2; } default_action = set_direct_2(4); }
    table fixed_t {
        key = { h.key.small : ternary; h.key.nibble : exact; }
        actions = { set_opt; set_range; }
        const entries = {
            (0 &&& 1, 3) : set_opt(9);
            (1 &&& 3, 3) : set_range(8);
            (_, 3) : set_opt(1);
            (5, 2) : set_opt(2);
        }
        const default_action = set_opt(0);
    }
    apply {
        s.egress_spec = 3;
        if (direct_t.apply().hit) { h.o.hits[0:0] = 1; }
        direct_signed.apply();
        switch (hash_t.apply().action_run) { set_hash: { h.o.hits[1:1] = 1; direct_meter_.read(m.colour); } default: { h.o.hits[2:2] = 1; } }
        long_t.apply();
        if (!lpm_t.apply().hit) { lpm2_t.apply(); }
        tern_t.apply();
        range_t.apply();
        opt_t.apply();
        sel_t.apply();
        prof_t.apply();
        empty_t.apply();
        if (h.key.flag) { fixed_t.apply(); }
        seen.count((bit<32>) h.key.nibble);
        h.o.colour = m.colour;
        h.o.colours[2:0] = m.meter;
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.key); packet.emit(h.o); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
