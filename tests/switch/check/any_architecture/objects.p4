// Extern objects with and without abstract methods, made of lists, structs, tuples and each other,
// at the top and inside blocks; packages that take them; no core.p4.
struct pair_t { bit<8> a; bit<8> b; }
enum Mode { ONE, TWO }

extern Virtual {
    Virtual();
    abstract bit<16> f(in bit<16> index);
    void run(in bit<16> index);
    bit<16> last();
}
extern State { State(int<16> size); bit<16> get(in bit<16> index); }
extern Listed<T> {
    Listed(list<T> values);
    Listed(tuple<bit<8>, bool> seed, bool sorted, @optional bit<8> most);
    T get(@optional in bit<8> at);
}
extern Pairs { Pairs(list<pair_t> all); Pairs(pair_t one, Mode mode); bit<8> sum(); }
extern Both<T> { Both(Listed<T> one, Listed<T> other); T step(in T by, out T left); }

control Work(inout bit<16> p, Virtual v, in bool q);
control Plain(inout bit<16> p, Listed<bit<8>> l);
package Inner<T>(T x, bit<8> n);
package Top(Work w, Plain p, Pairs ps, Inner<bit<4>> i, @optional Both<bit<8>> b,
            @optional bit<8> left_out, @optional tuple<bit<8>, bit<8>> t, @optional list<bit<8>> l);

const pair_t FIRST = { 1, 2 };
Virtual() shared = { bit<16> f(in bit<16> index) { return index + 1; } };
typedef Listed<bit<8>> Bytes;
Bytes({ 1, 2, 3 }) bytes;

control work(inout bit<16> p, Virtual v, in bool q) {
    Virtual() own = {
        State(1024) cells;
        bit<16> f(in bit<16> index) { return cells.get(index) + shared.last() + this.last(); }
    };
    Bytes({ 1, true }, true) without;
    Bytes({ 1, true }, false, 7) with_most;
    Both<bit<8>>(bytes, with_most) both;
    Pairs({ { 1, 2 }, { b = 3, a = 4 } }) listed;
    Pairs(FIRST, Mode.TWO) one;
    apply {
        own.run(6);
        if (q) { v.run(7); }
        bit<8> left;
        p = p + (bit<16>) (both.step(by = without.get(), left = left) + listed.sum() + one.sum());
        p = p + (bit<16>) both.step(left, _);
    }
}
control plain(inout bit<16> p, Listed<bit<8>> l) { apply { p = (bit<16>) l.get(4); } }

Pairs(FIRST, Mode.ONE) pairs;
Inner(4w3, 5) inner;
Top(w = work(), p = plain(), ps = pairs, i = inner, b = Both<bit<8>>(bytes, bytes), t = { 1, 2 },
    l = { 1, 2, 3 }) main;
