// Registers, counters, meters, hashes, checksums, random numbers, digests, messages.
#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> what; bit<8> index; bit<16> a; bit<32> b; bit<13> c; bit<3> d; int<16> e; bit<128> f; bit<16> check; bit<7> g; bool t; }
header maybe_t { bit<16> x; bit<24> y; }
header opt_t { bit<8> size; varbit<128> data; }
header out_t { bit<64> r0; bit<64> r1; bit<32> r2; int<16> r3; bit<128> r4; bit<16> sum; bit<8> colour; }
struct headers_t { in_t i; maybe_t maybe; opt_t opt; out_t o; }
struct meta_t { bit<64> big; bit<200> wide; }
struct note_t { bit<8> index; bit<13> c; bool t; int<16> e; bit<128> f; }

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.i);
        transition select(h.i.d) { 0: maybe; 1: opt; 2: both; default: accept; }
    }
    state maybe { packet.extract(h.maybe); transition accept; }
    state opt { packet.extract(h.opt, (bit<32>) (h.i.index & 15) << 3); transition accept; }
    state both { packet.extract(h.maybe); transition opt; }
}
control V(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.i.isValid(), { h.i.what, h.i.index, h.i.a, h.i.b, h.i.c, h.i.d }, h.i.check, HashAlgorithm.csum16);
        verify_checksum_with_payload(h.i.what == 9, { h.i.a, h.maybe }, h.i.check, HashAlgorithm.csum16);
        verify_checksum(h.i.what == 8, { h.i.a, h.maybe.x, h.opt.data, h.i.g }, h.i.g, HashAlgorithm.crc16);
    }
}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<1>>(16) bits;
    register<bit<7>>(16) sevens;
    register<int<13>>(10) signed;
    register<int<70>>(10) signed_wide;
    register<bit<64>>(256) words;
    register<bit<129>>(6) wide;
    register<bool>(4) flags;
    register<bit<48>>(1) times;
    counter(10, CounterType.packets) packets;
    meter(6, MeterType.bytes) speed;
    meter(6, MeterType.packets) rate;
    Checksum16() sum;
    apply {
        h.o.setValid();
        s.egress_spec = 1;
        bit<32> at = (bit<32>) h.i.index;
        packets.count(at);
        if (h.i.what == 0) {
            bit<7> seven; int<13> thirteen; bit<64> word; bit<129> w; bool flag; bit<1> one; int<70> seventy;
            sevens.read(seven, at); signed.read(thirteen, at); words.read(word, at); wide.read(w, at & 7);
            flags.read(flag, at & 3); bits.read(one, at & 31); signed_wide.read(seventy, at & 15);
            h.o.r0 = word;
            h.o.r1 = (bit<64>) seven + w[128:65];
            h.o.r2 = (bit<32>) (int<32>) thirteen + (flag ? 32w1 : 0) + (bit<32>) one;
            h.o.r4 = (bit<128>) (int<128>) seventy;
            sevens.write(at, seven + (bit<7>) h.i.a); signed.write(at, thirteen - (int<13>) h.i.e);
            words.write(at, word + (bit<64>) h.i.b); wide.write(at & 7, w + (bit<129>) h.i.f);
            flags.write(at & 3, flag != h.i.t); bits.write(at & 31, one ^ h.i.a[0:0]);
            signed_wide.write(at & 15, seventy - (int<70>) h.i.e);
        } else if (h.i.what == 1) {
            hash(h.o.r0, HashAlgorithm.crc32, 64w0, { h.i.a, h.i.b, h.maybe.x, h.maybe.y }, 64w0xffffffffff);
            hash(h.o.r1, HashAlgorithm.crc16, (bit<64>) h.i.a, { h.i.c, h.i.d, h.i.g, h.opt.data, h.i.t }, (bit<64>) h.i.b);
            hash(h.o.r2, HashAlgorithm.csum16, 32w5, { h.i.c, h.i.f, h.maybe }, 32w1000);
            hash(h.o.sum, HashAlgorithm.xor16, 16w0, { h.i.e, h.i.a, h.i.g }, 16w0xffff);
            hash(h.o.r4, HashAlgorithm.identity, 128w3, { h.i.f, h.i.b }, 128w0x1ffffffffffffffffffff);
        } else if (h.i.what == 2) {
            hash(h.o.r0, HashAlgorithm.identity, 64w1, { h.i.c, h.i.d }, 64w0);
            hash(h.o.r1, HashAlgorithm.crc32_custom, 64w1, { h.i.c }, 64w17);
            hash(h.o.r2, HashAlgorithm.random, 32w1, { h.i.c }, 32w100);
            h.o.sum = sum.get({ h.i.a, h.i.b, h.i.g });
        } else if (h.i.what == 3) {
            bit<8> small; bit<64> word; int<16> signed_number; bit<128> large;
            random(small, 8w3, h.i.index);
            random(word, 64w0, 64w0xffffffffffffffff);
            random(signed_number, -16s5, h.i.e);
            random(large, 128w5, h.i.f);
            h.o.r0 = word; h.o.r1 = (bit<64>) small; h.o.r3 = signed_number; h.o.r4 = large;
        } else if (h.i.what == 4) {
            speed.execute_meter(at, h.o.colour);
            rate.execute_meter(at & 7, h.o.r2);
        } else if (h.i.what == 5) {
            digest<note_t>(1, { h.i.index, h.i.c, h.i.t, h.i.e, h.i.f });
            digest(2, h.maybe);
            if (h.i.t) { digest(3, h.i.index); }
        } else if (h.i.what == 6) {
            log_msg("index {} and {}", { h.i.index, h.i.e });
            log_msg("plain");
            digest(4, { h.i.a });
            assert(h.i.index != 7);
            assume(h.i.a != 3);
        } else if (h.i.what == 7) {
            h.o.r0 = (bit<64>) s.ingress_global_timestamp;
            times.write(0, s.ingress_global_timestamp);
            h.o.r2 = (bit<32>) s.ingress_port ++ s.packet_length[15:0] > 7 ? 32w1 : 2;
        } else {
            h.o.colour = (bit<8>) s.checksum_error;
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.o.r1 = h.o.r1 ^ (bit<64>) s.egress_global_timestamp ^ (bit<64>) s.enq_timestamp; }
}
control C(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.i.t, { h.i.what, h.i.index, h.i.a, h.i.b, h.i.c, h.i.d, h.i.f }, h.i.check, HashAlgorithm.csum16);
        update_checksum_with_payload(h.opt.isValid(), { h.i.a, h.opt.data, h.maybe }, h.o.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(h.i.what == 10, { h.i.c, h.i.e }, h.o.r2, HashAlgorithm.crc32);
        update_checksum_with_payload(h.i.what == 11, { h.i.a, h.i.f }, h.o.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out packet, in headers_t h) {
    apply { packet.emit(h.i); packet.emit(h.maybe); packet.emit(h.opt); packet.emit(h.o); }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
