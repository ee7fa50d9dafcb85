// Parsing and deparsing: odd widths, signs, varbits, unions, stacks, lookahead, selects.
#include <core.p4>
#include <v1model.p4>

header kind_t { bit<8> kind; bit<8> count; }
struct pair_t { bit<5> a; int<11> b; }
header odd_t { bit<3> a; int<13> b; bool c; bit<7> d; pair_t pair; bit<33> e; int<65> f; bit<2> pad; bit<4> rest; }
header wide_t { bit<129> a; bit<1024> b; bit<7> c; }
header var_t { bit<8> size; varbit<320> options; bit<16> after; }
header small_t { bit<8> value; bit<8> more; }
header one_t { bit<8> tag; bit<24> x; }
header two_t { bit<8> tag; bit<8> y; }
header_union either_t { one_t one; two_t two; }
struct headers_t {
    kind_t kind;
    odd_t odd;
    wide_t wide;
    var_t var;
    var_t var2;
    small_t[4] stack;
    either_t[3] unions;
    either_t single;
}
struct meta_t { bit<8> left; bit<32> index; bit<8> seen; bit<16> ahead; bit<48> sum; }

parser Item(packet_in packet, inout small_t item, inout bit<8> seen) {
    state start {
        seen = seen + 1;
        packet.extract(item);
        verify(item.value != 5, error.StackOutOfBounds);
        transition select(item.more[1:0]) { 0: reject; 1: accept; 2: longer; }
    }
    state longer { packet.advance((bit<32>) item.value); item.more = 9; transition accept; }
}
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) chosen;
    Item() item;
    state start {
        packet.extract(h.kind);
        m.left = h.kind.count;
        transition select(h.kind.kind) {
            0: odd;
            1: wide;
            2: variable;
            3: stack;
            4: unions;
            5: ahead;
            6: skip;
            chosen: checks;
            7 .. 12: checks;
            0x80 &&& 0xc0: single;
            13: items;
            0xff: reject;
        }
    }
    state items {
        item.apply(packet, h.stack[m.left], m.seen);
        item.apply(packet, h.stack.next, m.seen);
        m.index = h.stack.lastIndex;
        transition accept;
    }
    state odd { packet.extract(h.odd); transition accept; }
    state wide { packet.extract(h.wide); transition accept; }
    state variable {
        packet.extract(h.var, (bit<32>) h.kind.count);
        transition select(h.var.size, h.var.after) {
            (0, _): accept;
            (chosen, 0x100 .. 0xffff): more;
            (1 .. 9, 0 .. 0x7fff): more;
            (_, 0x1 &&& 0x1): accept;
            default: more;
        }
    }
    state more { packet.extract(h.var2, (bit<32>) (h.var.size & 63) << 3); transition accept; }
    state stack {
        packet.extract(h.stack.next);
        m.index = h.stack.lastIndex;
        m.left = m.left - 1;
        transition select(h.stack.last.more & 3) { 0: accept; default: stack; }
    }
    state unions {
        transition select(packet.lookahead<bit<8>>()) { 1: one; 2: two; default: accept; }
    }
    state one { packet.extract(h.unions.next.one); transition unions; }
    state two { packet.extract(h.unions.next.two); transition unions; }
    state single {
        packet.extract(h.single.one);
        transition select(h.single.one.x[3:0]) { 0 .. 7: accept; default: twice; }
    }
    state twice { packet.extract(h.single.two); transition accept; }
    state ahead {
        m.ahead = packet.lookahead<bit<16>>();
        kind_t peek = packet.lookahead<kind_t>();
        pair_t pair = packet.lookahead<pair_t>();
        m.seen = peek.count + (bit<8>) (bit<11>) pair.b;
        transition accept;
    }
    state skip {
        packet.advance((bit<32>) h.kind.count);
        transition select(m.left) { 0: accept; default: skipped; }
    }
    state skipped { packet.extract(h.stack.next); transition accept; }
    state checks {
        verify(h.kind.count != 3, error.ParserInvalidArgument);
        verify(h.kind.count[0:0] == 1 && packet.length() > 4, error.NoMatch);
        transition accept;
    }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (s.parser_error != error.NoError) {
            s.egress_spec = 2;
            h.kind.setValid();
            h.kind.kind = (bit<8>) (s.parser_error == error.PacketTooShort ? 8w1 : 2);
        }
        if (h.odd.isValid()) {
            h.odd.e = h.odd.e + (bit<33>) h.odd.d;
            h.odd.b = h.odd.b - (int<13>) h.odd.pair.b;
            h.odd.c = !h.odd.c;
            h.odd.f = -h.odd.f;
        }
        if (h.wide.isValid()) {
            h.wide.a = h.wide.a * 3 + (bit<129>) h.wide.c;
            h.wide.b[511:0] = h.wide.b[1023:512] ^ (bit<512>) h.wide.a;
            h.wide.b = h.wide.b << 5;
        }
        if (h.var.isValid()) {
            if (h.var2.isValid() && h.var.options == h.var2.options) { h.kind.count = 77; }
            if (h.var.size[0:0] == 1) { h.var2 = h.var; }
        }
        if (h.stack[0].isValid()) {
            h.stack[m.index].value = 0x55;
            h.stack[(bit<32>) h.stack[0].value & 7].more = 0xaa;
            h.kind.count = h.stack[(bit<32>) h.kind.count & 7].value;
            if (h.stack[1].isValid()) { h.stack.push_front(1); h.stack[0] = { 1, 2 }; }
            else { h.stack.pop_front(2); }
            if (h.stack[3].isValid()) { h.stack.pop_front(1); }
        }
        if (h.unions[0].isValid()) {
            if (h.unions[1].two.isValid()) { h.unions[1].one = { 9, 10 }; }
            h.unions[2].two.setValid();
            h.unions[2].two.tag = 4;
            h.unions[0] = h.unions[1];
        }
        if (h.single.isValid()) {
            h.single.one.setValid();
            h.kind.count = h.single.two.isValid() ? 8w1 : 2;
        }
        if (m.ahead != 0) { h.kind.count = m.seen ^ m.ahead[15:8] ^ m.ahead[7:0]; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { if (h.kind.isValid() && h.kind.count == 7) { h.kind.count = (bit<8>) s.packet_length; } }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) {
    apply {
        packet.emit(h.kind);
        packet.emit(h.odd);
        packet.emit(h.wide);
        packet.emit(h.var);
        packet.emit(h.var2);
        packet.emit(h.stack);
        packet.emit(h.unions);
        packet.emit(h.single);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
