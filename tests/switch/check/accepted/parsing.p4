// Stacks, varbit, lookahead, advance, value sets, unions, errors.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct M { bit<8> x; bit<16> y; bool f; }
error { Bad, Worse }
header opt_t { bit<8> len; varbit<320> data; }
header_union U { h_t a; eth_t b; opt_t c; }
struct key_t { @match(ternary) bit<16> a; @match(lpm) bit<8> b; }
struct H { eth_t eth; h_t h; h_t g; h_t[3] st; opt_t opt; U u; U[3] us; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) types;
    value_set<tuple<bit<16>, bit<8>>>(4) pairs;
    value_set<key_t>(8) keys;
    const bit<16> LAST = 5;
    bit<8> left = 3;
    state start {
        p.extract(hdr.eth);
        p.extract(hdr.h);
        p.extract(hdr.g);
        p.extract(hdr.st.next);
        p.extract<h_t>(_);
        p.advance(8 * (bit<32>)left);
        h_t ahead = p.lookahead<h_t>();
        verify(p.length() > 5, error.Bad);
        if (ahead.b == 3) { left = left - 1; } else { m.x = p.lookahead<bit<8>>(); }
        ;
        transition select(hdr.eth.type) { types: options; LAST: stack; 1 .. 4: unions; 0x800 &&& 0xff00: options; _: accept; }
    }
    state options {
        p.extract(hdr.opt, (bit<32>)(((bit<16>)hdr.h.a - 5) * 32));
        transition select(hdr.eth.type, m.x) { pairs: accept; keys: stack; (1, _): reject; (_, default): accept; }
    }
    state stack {
        p.extract(hdr.st.next);
        transition select(hdr.st.last.a, hdr.st.lastIndex) { (0, _): stack; (_, 2): unions; default: accept; }
    }
    state unions {
        p.extract(hdr.u.a);
        p.extract(hdr.us.next.b);
        p.extract(hdr.us.next.c, 8);
    }
}
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        if (hdr.u.isValid()) { hdr.u.a.setInvalid(); }
        hdr.u.b.setValid(); hdr.u.a = { 1, 2, 3, 4 }; hdr.u = hdr.us[2]; hdr.u = {#}; hdr.us[m.x] = hdr.u;
        m.f = hdr.u == hdr.us[1]; hdr.us.push_front(1); hdr.st.pop_front(2); hdr.st[m.x[1:0]] = hdr.h;
        varbit<320> v = hdr.opt.data; m.f = v == hdr.opt.data;
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
