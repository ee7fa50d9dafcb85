// No main, and no core.p4: what others include.
match_kind { exact }
header item_t { bit<8> a; }
struct items_t { item_t[3] all; }
extern Bits { void get<T>(out T value); bit<32> left(); }
extern bit<8> hinted(in bit<8> a, @optional in bit<8> hint);
bit<8> next(inout bit<8> x) { x = x + 1; return x; }
action bump(inout bit<8> x) { x = next(x); }
parser Items(Bits b, out items_t x) {
    state start { b.get(x.all.next); transition select(x.all.last.a) { 1: start; _: rest; } }
    state rest { b.get<item_t>(_); b.get(x.all.next); transition accept; }
}
control Inner(inout bit<8> x)(bit<8> k) { apply { x = x + k; } }
control Outer(inout bit<8> x) {
    Inner(3) three;
    Inner(4) four;
    @name(".t") table t {
        key = { next(x): exact @name("next"); hinted(x): exact @name("hinted"); }
        actions = { bump(x); }
        default_action = bump(x);
    }
    apply { three.apply(x); four.apply(x); t.apply(); bump(x); exit; }
}
control Other(inout bit<8> x) {
    @name(".t") table t { key = { x: exact; } actions = { bump(x); } default_action = bump(x); }
    apply { t.apply(); }
}
