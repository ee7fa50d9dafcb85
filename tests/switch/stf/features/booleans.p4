// Boolean fields, in select, keys, entries and registers; negative numbers in select.
#include "../first.p4h"
header f_t { bool a; bool b; bit<6> rest; int<8> n; }
struct headers_t { data_t d; f_t f; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.f); transition select(h.f.a, h.f.n) { (true, -1): yes; (false, -3 .. 3): no; default: accept; } }
    state yes { m.unused = 1; transition accept; }
    state no { m.unused = 2; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bool>(4) r; bool old;
    action set(bool v) { h.f.b = v; }
    table t { key = { h.f.a : exact; h.f.n : ternary; } actions = { set; NoAction; } const entries = { (true, -1) : set(true); (false, _) : set(false); } }
    apply { s.egress_spec = 1; h.d.y = m.unused; t.apply(); r.read(old, 1); r.write(1, !old); h.d.z = old ? 8w1 : 0; h.f.rest = h.f.rest |-| 1; }
}
#include "../rest.p4h"
