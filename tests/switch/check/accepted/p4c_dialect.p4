// What p4c accepts beside, or ahead of, the specification.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct pair_t { bit<8> b; bit<8> c; }
struct nested_t { bit<8> a; pair_t p; }
struct H { h_t s[4]; }
struct M { bit<8> x; }

extern Kinds {
    Kinds(list<tuple<match_kind, bit<8>>> kinds);
    void count();
}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<nested_t>(4) nested;
    value_set<tuple<bit<8>, tuple<bit<8>, bit<8>>>>(4) tuples;
    bit<2> i = 0;
    state start {
        p.extract(hdr.s[(int) i]);
        pair_t pair = { hdr.s[0].b, hdr.s[0].c };
        transition select(hdr.s[0].a, pair) {
            (1, { 2, 3 }): accept;
            (4, _): next;
            nested: accept;
            default: reject;
        }
    }
    state next {
        transition select(hdr.s[0].a, { hdr.s[0].b, hdr.s[0].c }) {
            (1, { 2, 4 }): accept;
            nested: accept;
            tuples: accept;
            _: last;
        }
    }
    state last {
        nested_t all = { 1, { 2, hdr.s[0].c } };
        transition select(all) {
            { 1, { 2, 3 } }: accept;
            (_, { 2, 4 }): accept;
            nested: accept;
        }
    }
}
control V(inout H hdr, inout M m) { apply { } }
control First(inout h_t stack[4]) { apply { stack[1] = stack[0]; } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    Kinds({ { exact, 1 }, { lpm, 2 } }) kinds;
    First() first;
    @name(".nop") action nop() { }
    table t { key = { m.x : exact; } actions = { nop; } }
    apply {
        h_t copy[4];
        copy = hdr.s;
        first.apply(copy);
        hdr.s = copy;
        kinds.count();
        t.apply();
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    @name(".nop") action nop() { }
    table u { key = { m.x : exact; } actions = { nop; } }
    apply { u.apply(); }
}
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
