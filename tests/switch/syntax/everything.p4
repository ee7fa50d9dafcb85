// One of each construct of the language, for tests that read, cut and mutate whole programs.
#include <core.p4>
#define V1MODEL_VERSION 20180101
#include <v1model.p4>

#ifndef STAGES
#define STAGES 2
#endif
#define BYTE bit<8>
#define MAX(a, b) ((a) > (b) ? (a) : (b))

const bit<16> TYPE_IPV4 = 16w0x0800;
const int BIG = 1_000_000 + 0o17 - 0b11 * 0x1F;
const bool CHECKED = static_assert(STAGES > 1, "at least \"two\" stages");
@pragma diagnostic ignore all
typedef bit<48> mac_t;
@p4runtime_translation("example.com/port", 32)
type bit<9> port_t;
enum Colour { RED, GREEN, BLUE, }
enum bit<8> Protocol { TCP = 6, UDP = 17 }
error { BadVersion, BadChecksum }
match_kind { fuzzy }

header ethernet_t { mac_t dst; mac_t src; @name("kind") bit<16> type; }
header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    Protocol protocol;
    bit<32> src;
    bit<32> dst;
    varbit<320> options;
}
header tag_t<T> { T value; }
header_union l3_t { ipv4_t v4; tag_t<bit<16>> tag; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; tag_t<bit<16>>[4] tags; l3_t l3; }
struct meta_t { bit<(STAGES * 8)> acc; tuple<bit<8>, bool> pair; port_t port; error err; int<7> s; }
typedef struct pair_t<A, B> { A a; B b; } pairs_t;

extern Accumulator<T, I> {
    Accumulator(bit<32> size);
    Accumulator(bit<32> size, T start);
    T add<U>(in I index, in U value);
    @synchronous(add) abstract void step(inout T value, @optional in I index);
}
extern T pick<T>(in T a, in T b);
extern void note(string text, list<tuple<bit<8>, string>> items);

bit<8> larger<T>(in bit<8> a, in bit<8> b = 3) {
    if (a < b) { return b; } else if (a == b) return a;
    return (bit<8>) (a |+| b |-| 1 & 0xF0 ^ ~a | b << 2 >> 1);
}

action drop_it(inout standard_metadata_t sm) { mark_to_drop(sm); }

parser Tags(packet_in p, inout headers_t h)(bit<8> limit) {
    state start { p.extract(h.tags.next); transition accept; }
}

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    const bit<8> DEPTH = 4;
    Tags(DEPTH) tags;
    value_set<bit<16>>(4) known;
    BYTE seen = 0;
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type, sm.ingress_port) {
            (TYPE_IPV4, 1 .. 3): ipv4;
            (0x8100 &&& 0xEFFF, _): tagged;
            (known, default): tagged;
            default: reject;
        }
    }
    @name("v4") state ipv4 {
        bit<8> first = p.lookahead<bit<8>>()[7:0];
        p.extract(h.ipv4, (bit<32>) (first[3:0] ++ 2w0) - 20);
        verify(h.ipv4.version == 4, error.BadVersion);
        { seen = seen + 1; ; }
        transition accept;
    }
    state tagged { if (seen > 2) { tags.apply(p, h); } transition ipv4; }
}

control Verify(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.ipv4.isValid(), { h.ipv4.src, h.ipv4.dst }, h.ipv4.src, HashAlgorithm.csum16);
    }
}

control Count(in bit<8> x)(bit<32> size) {
    counter(size, CounterType.packets_and_bytes) c;
    apply { c.count((bit<32>) x); }
}

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    @name("acc") register<bit<32>>(1024) acc;
    Count(16) count;
    Accumulator<bit<8>, bit<32>>(16, 8w1) steps = {
        void step(inout bit<8> value, in bit<32> index) { value = value + 1; this.add(index, 8w2); }
    };
    bit<32> value = 32w5;
    pair_t<bit<8>, bool> pair = { a = 1, b = true };
    action forward(port_t port, @hidden bit<8> other) { m.port = port; exit; }
    action nothing() { }
    table routes {
        key = {
            h.ipv4.dst : lpm @name("dst");
            h.ipv4.src[7:0] : ternary;
            h.ipv4.isValid() : exact;
        }
        actions = { forward; @defaultonly nothing; .NoAction(); }
        const default_action = nothing();
        const entries = {
            (0x0A000000 &&& 0xFF000000, _, true) : forward((port_t) 9w1, 2) @name("ten");
            const priority = 10 : (1, 2 &&& 3, default) : nothing;
            priority = (5 + 5) : (1, 4 .. 9, false) : forward(other = 1, port = (port_t) 2);
        }
        size = 1024;
        @atomic implementation = action_selector(HashAlgorithm.crc16, 32w128, 32w10);
    }
    table plain { key = { } actions = { nothing; } default_action = nothing; }
    apply {
        if (!routes.apply().hit && h.ipv4.isValid() || sm.egress_spec != 9w511) {
            switch (plain.apply().action_run) {
                nothing: { return; }
                forward:
                NoAction: { count.apply(h.ipv4.src[7:0]); }
                default: { }
            }
        }
        switch (h.ipv4.protocol) { Protocol.TCP: Protocol.UDP: { value = 1; } default: { } }
        @unroll for (bit<8> i = 0, bit<8> j = 9; i < j; i += 1, j -= 2) {
            if (i == 3) continue;
            value ^= MAX((bit<32>) i, value);
        }
        for (bit<8> k in 0 .. 7) { acc.write((bit<32>) k, value); }
        for (@x tag_t<bit<16>> tag in h.tags) { if (tag.isValid()) break; }
        @atomic {
            acc.read(value, 3);
            value[15:8] = larger<bit<8>>(value[7:0], b = 5);
            value[i +: 8] |= 1;
            value <<= 1; value >>= 2; value |+|= 3; value |-|= 4; value *= 5; value &= ~32w7;
        }
        h.tags[0] = {#};
        m.pair = { 1, ... };
        pair = (pair_t<bit<8>, bool>) { a = (bit<8>) (int<8>) -8s3, b = false, ... };
        m.err = error.NoMatch;
        Count.apply(8w3);
        note("x", (list<tuple<bit<8>, string>>) { { 1, "a" }, { 2, "b" } });
        hash(m.acc, HashAlgorithm.crc32, 16w0, { h.ipv4.src, 16w5 }, 32w7 % (STAGES + 1));
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control Update(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.ethernet); p.emit(h); } }

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
