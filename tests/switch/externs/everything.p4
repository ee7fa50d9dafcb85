// Externs of the program's own, with every type of value, in every block.
#include <core.p4>
#include <v1model.p4>

enum Color { RED, GREEN, BLUE }
enum bit<8> Kind { A = 3, B = 4 }
error { Odd }
type bit<9> Port_t;

header in_t { bit<8> x; bit<8> y; bit<8> z; bit<64> w; }
header out_t {
    bit<136> wide;
    int<8> negated;
    bit<8> flags;
    bit<8> x;
    bit<8> y;
    bit<8> color;
    bit<8> error_code;
    bit<40> far;
    bit<16> sums;
    bit<32> total;
}
header item_t { bit<12> k; bit<4> l; }
header small_t { bit<8> q; }
header large_t { bit<16> q; }
header text_t { bit<8> bytes; varbit<64> text; }
header_union either_t { small_t small; large_t large; }
struct pair_t { bit<8> x; bool f; }
struct deep_t { pair_t p; tuple<bit<8>, bool> t; item_t h; item_t[2] s; }
struct headers_t { in_t i; text_t text; out_t o; item_t[3] items; either_t either; }
struct metadata_t { bit<8> parsed; }

extern bit<129> wide(in bit<129> a, in int<65> b);
extern int<7> negated(in int<7> a);
extern bool flipped(in bool a, out int<33> far);
extern pair_t pairs(in pair_t p, inout pair_t q);
extern tuple<bit<8>, bool> swapped(in tuple<bit<8>, bool> t);
extern Color after(in Color c, in Kind k, in error e, out error f);
extern void item(inout item_t h);
extern void other(inout either_t u);
extern void items(inout item_t[3] s);
extern deep_t deep(in deep_t d);
extern T same<T>(in T x);
extern void many(in bit<8> a, out bit<8> b, inout bit<8> c, @optional in bit<8> d, out Port_t e);
extern void constants(bit<8> k, int i, string s, in bit<0> z);
extern void text(inout text_t t);
extern bit<8> over(in bit<8> a);
extern bit<8> over(in bit<8> a, in bit<8> b);
extern void add_to(register<bit<8>> r, in bit<8> v);
extern bit<32> total();

extern Adder<T> {
    Adder(T start, @optional bit<8> unused);
    T step(in T by);
}
extern Hooked {
    Hooked(tuple<bit<8>, bool> t, Adder<bit<4>> a, Color c, list<pair_t> ps);
    abstract bit<8> hook(in bit<8> a, inout pair_t p, out Color c);
    bit<8> go(in bit<8> a);
    bit<8> base();
}

Adder<bit<4>>(5) shared;
bit<8> twice(in bit<8> a) { return over(a) + over(a, 1); }

parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    Adder<bit<8>>(1) parsed;
    state start {
        packet.extract(h.i);
        m.parsed = parsed.step(h.i.x);
        transition select(over(h.i.y), h.i.z) {
            (7, _): varied;
            (_, 0xff): reject;
            default: accept;
        }
    }
    state varied {
        packet.extract(h.text, (bit<32>) (h.i.z & 0x7) * 8);
        text(h.text);
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) { apply { m.parsed = over(m.parsed, 0); } }

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    Adder<bit<8>>(7, 9) sums;
    register<bit<8>>(4) cells;
    Hooked({1, true}, shared, Color.BLUE, {{1, true}, {2, false}}) hooked = {
        register<bit<8>>(2) seen;
        bit<8> hook(in bit<8> a, inout pair_t p, out Color c) {
            bit<8> before;
            seen.read(before, 0);
            seen.write(0, before + 1);
            p.x = p.x + a;
            p.f = !p.f;
            c = Color.GREEN;
            return twice(a) + this.base() + before;
        }
    };
    action by(bit<8> k) { h.o.x = over(k, h.o.x); }
    table kinds {
        key = { over(h.i.y) : exact @name("y"); }
        actions = { by; NoAction; }
        const entries = { 3: by(9); 4: by(10); }
        default_action = NoAction;
    }
    apply {
        s.egress_spec = 1;
        h.o.setValid();
        bit<129> w = wide(((bit<129>) h.i.w) << 65, (int<65>) (bit<65>) h.i.y - 70);
        h.o.wide = (bit<136>) w;
        h.o.negated = (int<8>) negated((int<7>) h.i.z[6:0]);
        int<33> far;
        bool f = flipped(h.i.x > 100, far);
        h.o.far = (bit<40>) (bit<33>) far;
        pair_t q = {h.i.y, f};
        pair_t r = pairs({h.i.x, true}, q);
        tuple<bit<8>, bool> t = swapped({h.i.z, r.f});
        error e = error.NoMatch;
        Color c = h.i.x > 127 ? Color.RED : Color.BLUE;
        c = after(c, (Kind) h.i.y, e, e);
        h.o.color = c == Color.RED ? 8w1 : c == Color.GREEN ? 8w2 : 8w3;
        h.o.error_code = e == error.Odd ? 8w1 : 8w0;
        h.items[0].setValid();
        h.items[0].k = (bit<12>) h.i.x;
        if (h.i.x > 50) { item(h.items[1]); item(h.items[0]); }
        items(h.items);
        h.either.small.setValid();
        h.either.small.q = h.i.x;
        other(h.either);
        deep_t d;
        d.p = r;
        d.t = t;
        d.h = h.items[0];
        d.s[1] = h.items[1];
        d = deep(d);
        h.o.x = d.p.x + d.t[0];
        h.o.y = same(h.i.y) + same<pair_t>({h.i.z, f}).x + (bit<8>) same(w)[7:0];
        bit<8> b;
        Port_t port;
        many(h.i.x, b, h.o.x, 7, port);
        many(a = h.o.x, b = _, c = h.o.y[7:0], e = port);
        constants(k = 200, i = 1 << 70, s = "text", z = 0);
        kinds.apply();
        add_to(cells, h.i.x);
        bit<8> cell;
        cells.read(cell, 1);
        h.o.sums = sums.step(b) ++ (cell + (bit<8>) shared.step(h.i.x[3:0]));
        h.o.flags = hooked.go(h.o.x) + (bit<8>) (bit<9>) port + m.parsed;
        if (over(h.i.x) > 60 && over(h.i.y, h.i.z) > 3) { h.o.total = total(); }
        for (bit<8> i in 8w0 .. (h.i.x & 3)) { h.o.y = over(h.o.y, i); }
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout metadata_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
