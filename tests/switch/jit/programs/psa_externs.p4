// PSA's externs on random data: `what` says which.
#include <core.p4>
#include <psa.p4>

header what_t { bit<8> what; bit<8> index; bit<16> key; }
header data_t { bit<48> a; bit<16> b; bit<7> c; bit<9> d; int<32> e; bit<1> f; bit<15> g; bit<128> h; }
header some_t { bit<16> x; bit<32> y; }
header result_t { bit<64> r; bit<16> s; bit<16> t; bit<32> colours; }
struct headers_t { what_t what; data_t data; some_t[2] some; result_t result; }
struct meta_t { bit<64> r; bit<16> s; bit<16> t; bit<32> colours; bit<16> state; }
struct empty_t { }
struct carried_t { meta_t meta; }

parser IngressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_ingress_parser_input_metadata_t s, in empty_t resubmitted, in empty_t recirculated) {
    InternetChecksum() ck;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;
    state start {
        p.extract(h.what);
        p.extract(h.data);
        transition some;
    }
    state some {
        ck.add(h.data.a);
        crc.update(h.data.b);
        transition select(h.what.index[0:0]) { 0 : more; default : sums; }
    }
    state more {
        p.extract(h.some.next);
        ck.add(h.some.last);
        crc.update({ h.some.last.x, h.data.c });
        transition select(h.some.lastIndex) { 0 : some; default : sums; }
    }
    state sums {
        ck.subtract({ h.data.b, h.data.h });
        m.s = ck.get();
        m.state = ck.get_state();
        m.r = (bit<64>) crc.get();
        transition accept;
    }
}

control Twice(inout meta_t m, in data_t d) {
    Checksum<bit<64>>(PSA_HashAlgorithm_t.IDENTITY) same;
    apply {
        same.update(d.a);
        same.update({ d.c, d.d });
        m.r = m.r ^ same.get();
        same.update(d.h);
        m.r = m.r + same.get();
    }
}

control ingress(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t s,
        inout psa_ingress_output_metadata_t o) {
    Register<bit<32>, bit<8>>(8, 5) small;
    Register<bit<77>, bit<16>>(4, 77w0x1ffffffffffffffff00) wide;
    Register<bool, bit<8>>(3, true) flags;
    Register<int<13>, bit<8>>(5, -13s77) signed;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) ones;
    Hash<bit<64>>(PSA_HashAlgorithm_t.IDENTITY) same;
    Hash<bit<9>>(PSA_HashAlgorithm_t.TARGET_DEFAULT) narrow;
    Random<bit<16>>(7, 900) few;
    Random<bit<64>>(0, 64w0xffffffffffffffff) all;
    Random<int<24>>(-100, 100) around;
    Counter<bit<64>, bit<16>>(5, PSA_CounterType_t.PACKETS_AND_BYTES) counts;
    Meter<bit<8>>(6, PSA_MeterType_t.BYTES) bytes;
    Meter<bit<8>>(6, PSA_MeterType_t.PACKETS) packets;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits;
    DirectMeter(PSA_MeterType_t.BYTES) rate;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) misses;
    ActionProfile(16) profile;
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 16, 10) selector;
    PSA_MeterColor_t colour = PSA_MeterColor_t.GREEN;
    Twice() twice;

    action metered(bit<16> t) { m.t = t; hits.count(); colour = rate.execute(colour); }
    action blind() { colour = rate.execute(); hits.count(); hits.count(); }
    action nothing() { }
    table direct {
        key = { h.what.index : exact; }
        actions = { metered; blind; nothing; }
        default_action = metered(16w9);
        psa_direct_counter = hits;
        psa_direct_meter = rate;
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
    }
    action set(bit<16> t) { m.t = t; }
    action missed() { misses.count(); m.t = 0x5555; }
    table masked {
        key = { h.what.key : ternary; h.what.index : range; }
        actions = { set; missed; }
        default_action = missed();
        psa_direct_counter = misses;
    }
    action spread(bit<16> t) { m.t = m.t ^ t; }
    action empty() { m.t = 0xe; }
    table profiled {
        key = { h.what.index : exact; }
        actions = { spread; empty; NoAction; }
        psa_implementation = profile;
    }
    table selected {
        key = { h.what.index : exact; h.data.a : selector; h.data.c : selector; }
        actions = { spread; empty; NoAction; }
        psa_implementation = selector;
        psa_empty_group_action = empty();
    }
    apply {
        send_to_port(o, (PortId_t) 1);
        counts.count(h.what.key);
        if (h.what.what == 0) {
            m.r = (bit<64>) small.read(h.what.index);
            small.write(h.what.index, (bit<32>) h.data.e + 1);
        } else if (h.what.what == 1) {
            bit<77> w = wide.read(h.what.key);
            m.r = w[76:13];
            wide.write(h.what.key, w ^ h.data.h[100:24]);
        } else if (h.what.what == 2) {
            if (flags.read(h.what.index)) { m.r = 1; }
            flags.write(h.what.index, h.data.f == 1);
            int<13> v = signed.read(h.what.index);
            m.t = (bit<16>) (int<16>) v;
            signed.write(h.what.index, v + (int<13>) h.data.e[12:0]);
        } else if (h.what.what == 3) {
            m.r = (bit<64>) crc32.get_hash({ h.data.a, h.data.c, h.some[0].x, h.some });
            m.t = crc16.get_hash(h.data);
        } else if (h.what.what == 4) {
            m.t = ones.get_hash({ h.data.a, h.data.b });
            m.r = same.get_hash({ h.data.h, h.some[1].y });
            m.colours = (bit<32>) narrow.get_hash(h.data.g);
        } else if (h.what.what == 5) {
            m.t = crc16.get_hash(h.data.b, { h.data.a }, h.what.key);
            m.r = same.get_hash(64w0xfffffffffffffff0, h.data.h, (bit<64>) h.data.a);
        } else if (h.what.what == 6) {
            m.t = few.read();
            m.r = all.read();
            m.colours = (bit<32>) (int<32>) around.read();
        } else if (h.what.what == 7) {
            direct.apply();
            masked.apply();
        } else if (h.what.what == 8) {
            if (!profiled.apply().hit) { m.colours = 99; }
        } else if (h.what.what == 9) {
            switch (selected.apply().action_run) {
                spread: { m.colours = 1; }
                empty: { m.colours = 2; }
                default: { m.colours = 3; }
            }
        } else if (h.what.what == 10) {
            twice.apply(m, h.data);
            twice.apply(m, h.data);
        } else {
            colour = bytes.execute(h.what.index);
            if (colour == PSA_MeterColor_t.YELLOW) { m.t = 1; }
            if (h.data.f == 1) { colour = PSA_MeterColor_t.YELLOW; }
            colour = packets.execute(h.what.index, colour);
            if (colour == PSA_MeterColor_t.RED) { m.t = m.t + 2; }
            colour = bytes.execute(h.what.index, PSA_MeterColor_t.GREEN);
        }
        if (colour == PSA_MeterColor_t.GREEN) { m.colours = m.colours | 0x100; }
        if (colour == PSA_MeterColor_t.RED) { m.colours = m.colours | 0x200; }
    }
}

control IngressDeparserImpl(packet_out p, out empty_t clone, out empty_t resubmit,
        out carried_t normal, inout headers_t h, in meta_t m, in psa_ingress_output_metadata_t o) {
    Digest<carried_t>() carried_digest;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) ones;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    apply {
        ones.update(h.data);
        ones.update({ h.some[0], h.some[1] });
        crc16.update(h.some);
        crc16.update(h.data.c);
        normal.meta = m;
        normal.meta.state = ones.get() ^ crc16.get();
        if (h.what.index == 3) { carried_digest.pack(normal); }
        p.emit(h);
    }
}

parser EgressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_egress_parser_input_metadata_t s, in carried_t normal, in empty_t cloned_i2e,
        in empty_t cloned_e2e) {
    state start { m = normal.meta; transition accept; }
}

control egress(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t s,
        inout psa_egress_output_metadata_t o) {
    apply { }
}

control EgressDeparserImpl(packet_out p, out empty_t clone, out empty_t recirculate,
        inout headers_t h, in meta_t m, in psa_egress_output_metadata_t o,
        in psa_egress_deparser_input_metadata_t s) {
    InternetChecksum() ck;
    apply {
        ck.set_state(m.state);
        ck.add(m.r);
        ck.subtract({ m.s, m.t });
        h.result = { m.r, ck.get(), m.t, m.colours };
        p.emit(h.result);
        ck.clear();
        ck.add(h.what);
        h.result.s = ck.get_state();
        h.result.t = m.state;
        p.emit(h.result);
    }
}

IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
