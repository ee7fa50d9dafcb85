"""Parsers and deparsers: headers, stacks, unions, varbits, selects, errors."""

from __future__ import annotations

import pytest
from v1programs import packet, source, switch

from gradplane.switch import Switch

TO_1 = "s.egress_spec = 1; "
CODES = (
    "if (s.parser_error == error.PacketTooShort) { h.a.z = 1; }"
    "if (s.parser_error == error.NoMatch) { h.a.z = 2; }"
    "if (s.parser_error == error.StackOutOfBounds) { h.a.z = 3; }"
    "if (s.parser_error == error.HeaderTooShort) { h.a.z = 4; }"
    "if (s.parser_error == error.ParserTimeout) { h.a.z = 5; }"
    "if (s.parser_error == error.ParserInvalidArgument) { h.a.z = 6; }"
)


def sent(sw: Switch, data: bytes) -> bytes:
    ((_, out),) = sw.process(0, data)
    return out


def error(sw: Switch, data: bytes) -> int:
    return sent(sw, data)[3]


# -- headers ------------------------------------------------------------------------------------


def test_fields_of_any_width_and_sign() -> None:
    sw = switch(
        types="struct part_t { bit<3> p; int<5> q; }"
        "header w_t { bit<1> a; bool b; int<6> c; part_t d; bit<129> e; bit<7> f; }",
        headers="w_t w;",
        parser="pkt.extract(h.a); pkt.extract(h.w); transition accept;",
        ingress=TO_1 + "h.w.c = h.w.c - 1; h.w.b = !h.w.b; h.w.d.q = -h.w.d.q;"
        "h.w.e = h.w.e + 1; h.a.x = (bit<8>) (bit<6>) h.w.c;",
    )
    e = (1 << 129) - 1

    def wire(b: int, c: int, q: int, e: int) -> bytes:
        bits = f"1{b}{c % 64:06b}101{q % 32:05b}{e:0129b}{0x55:07b}"
        return int(bits, 2).to_bytes(len(bits) // 8, "big")

    out = sent(sw, packet() + wire(0, -32, -3, e) + b"rest")
    assert out == packet(0, 31) + wire(1, 31, 3, 0) + b"rest"


def test_headers_that_do_not_fill_bytes_shift_what_follows() -> None:
    sw = switch(
        types="header n_t { bit<4> v; } header o_t { bit<12> v; }",
        headers="n_t n; o_t o;",
        parser="pkt.extract(h.n); pkt.extract(h.o); pkt.extract(h.a); transition accept;",
        ingress=TO_1 + "if (h.n.v == 1) { h.n.setInvalid(); }",
        deparser="pkt.emit(h.n); pkt.emit(h.a); pkt.emit(h.o);",
    )
    assert sent(sw, bytes.fromhex("0123aabbccdd5678")) == bytes.fromhex("0aabbccdd1235678")
    assert sent(sw, bytes.fromhex("1123aabbccdd5678")) == bytes.fromhex("aabbccdd12356780")


def test_a_short_packet_is_an_error_and_is_not_parsed_further() -> None:
    sw = switch(
        types="header b_t { bit<16> v; }",
        headers="b_t b;",
        parser="pkt.extract(h.a); pkt.extract(h.b); transition accept;",
        ingress=TO_1 + CODES + "if (h.b.isValid()) { h.a.y = 1; }",
    )
    assert sent(sw, packet(payload=b"xy")) == packet(0, 0, 1) + b"xy"
    assert sent(sw, packet(payload=b"x")) == packet(0, 0, 0, 1) + b"x"
    assert sent(sw, b"ab") == b"ab"


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_errors_may_be_declared_before_core_p4(engine: str) -> None:
    code = "verify(h.a.x == 0, error.Early); transition accept;"
    text = "error { Early }" + source(
        parser="pkt.extract(h.a);" + code,
        ingress=TO_1 + "h.a.z = s.parser_error == error.NoError ? 8w1 :"
        "s.parser_error == error.Early ? 8w2 : 3;",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    assert [error(sw, packet(x=x)) for x in (0, 1)] == [1, 2]


def test_lookahead_advance_and_length() -> None:
    sw = switch(
        types="header b_t { bit<16> v; } struct two_t { bit<4> p; bit<12> q; }",
        headers="b_t b;",
        metadata="two_t two; bit<32> n;",
        parser="pkt.extract(h.a); h.a.x = pkt.lookahead<bit<8>>(); m.two = pkt.lookahead<two_t>();"
        "pkt.advance(8 * (bit<32>) h.a.kind); m.n = pkt.length(); pkt.extract(h.b);"
        "transition accept;",
        ingress=TO_1 + CODES + "h.a.y = (bit<8>) m.n + (bit<8>) m.two.p;",
    )
    assert sent(sw, packet(3, payload=b"\x51-+yes!")) == packet(3, 0x51, 11 + 5) + b"yes!"
    assert sent(sw, packet(9, payload=b"\x51-+")) == packet(9, 0x51, 5, 1) + b"\x51-+"
    assert error(sw, packet(0, payload=b"1")) == 1


# -- select -------------------------------------------------------------------------------------


def test_select_with_masks_ranges_and_values_from_the_packet() -> None:
    sw = switch(
        metadata="bit<8> found;",
        parser="pkt.extract(h.a); transition select(h.a.kind, h.a.x) {"
        " (1, 2): s1; (0x10 &&& 0xF0, _): s2; (5 .. 7, 9): s3; (h.a.y, h.a.z): s4; (9, 9): reject;"
        " (200, _): accept; }",
        states="".join(f"state s{i} {{ m.found = {i}; transition accept; }}" for i in range(1, 5)),
        ingress=TO_1 + "h.a.x = m.found;" + CODES,
    )

    def found(*fields: int) -> tuple[int, int]:
        out = sent(sw, packet(*fields))
        return out[1], out[3]

    cases = [(1, 2), (0x1F, 0), (5, 9), (7, 9), (8, 9), (8, 9, 8, 9), (200, 1), (9, 9)]
    results = [(1, 0), (2, 0), (3, 0), (3, 0), (0, 2), (4, 9), (0, 0), (0, 0)]
    assert [found(*case) for case in cases] == results


def test_constant_selects_take_the_first_case() -> None:
    sw = switch(
        parser="pkt.extract(h.a); transition select(h.a.kind) {"
        " 1: s1; 1: s2; 2: s2; default: accept; }",
        states="state s1 { h.a.x = 1; transition accept; }"
        "state s2 { h.a.x = 2; transition accept; }",
        ingress=TO_1,
    )
    assert [sent(sw, packet(k))[1] for k in (1, 2, 3)] == [1, 2, 0]


def test_a_tuple_is_matched_element_by_element() -> None:
    sw = switch(
        parser="pkt.extract(h.a); tuple<bit<8>, bit<8>> t = { h.a.x, h.a.y };"
        "transition select(t) { (1, 2): both; (1, _): first; default: accept; }",
        states="state both { h.a.z = 2; transition accept; }"
        "state first { h.a.z = 1; transition accept; }",
    )
    assert [error(sw, packet(0, *xy)) for xy in ((1, 2), (1, 3), (2, 2))] == [2, 1, 0]


def test_signed_ranges() -> None:
    sw = switch(
        parser="pkt.extract(h.a); transition select((int<8>) h.a.kind) {"
        " -5 .. 3: inside; default: accept; }",
        states="state inside { h.a.x = 1; transition accept; }",
        ingress=TO_1,
    )
    assert [sent(sw, packet(k & 255))[1] for k in (-6, -5, 0, 3, 4)] == [0, 1, 1, 1, 0]


@pytest.mark.p4runtime("9.6-5")
def test_parser_value_sets() -> None:
    sw = switch(
        parser_locals="value_set<bit<8>>(4) known;",
        parser="pkt.extract(h.a); transition select(h.a.kind) { known: yes; default: accept; }",
        states="state yes { h.a.x = 1; transition accept; }",
        ingress=TO_1,
    )
    assert sent(sw, packet(7))[1] == 0
    sw.value_set("known").replace([((7,),), ((9,),)])
    assert [sent(sw, packet(k))[1] for k in (7, 8, 9)] == [1, 0, 1]


def test_value_sets_as_parts_of_a_case() -> None:
    sw = switch(
        types="struct near_t { @match(range) bit<8> v; }",
        parser_locals="value_set<bit<8>>(4) known; value_set<near_t>(4) near;",
        parser="pkt.extract(h.a); transition select(h.a.kind, h.a.x) {"
        " (known, 5): yes; (_, near): maybe; default: accept; }",
        states="state yes { h.a.y = 1; transition accept; }"
        "state maybe { h.a.y = 2; transition accept; }",
        ingress=TO_1,
    )
    sw.value_set("known").replace([((7,),)])
    sw.value_set("near").replace([((4, 6),)])
    given = [(7, 5), (8, 5), (7, 6), (7, 7)]
    assert [sent(sw, packet(k, x))[2] for k, x in given] == [1, 2, 2, 0]


def test_verify_and_endless_parsers_end_in_an_error() -> None:
    sw = switch(
        parser="pkt.extract(h.a); verify(h.a.kind != 1, error.NoMatch); h.a.x = 1;"
        "transition select(h.a.kind) { 2: round; default: accept; }",
        states="state round { transition round; }",
        ingress=TO_1 + CODES,
    )
    assert [sent(sw, packet(k))[1::2] for k in (0, 1, 2)] == [bytes([1, 0]), bytes([0, 2]),
                                                              bytes([1, 5])]  # fmt: skip


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_long_chains_of_states(engine: str) -> None:
    states = "".join(
        f"state s{i} {{ h.a.x = h.a.x + 1; transition s{i + 1}; }}" for i in range(600)
    )
    text = source(
        parser="pkt.extract(h.a); transition s0;",
        states=f"{states} state s600 {{ transition accept; }}",
    )
    assert Switch("test.p4", text=text, engine=engine).process(0, bytes(4))[0][1][1] == 600 % 256


# -- stacks -------------------------------------------------------------------------------------

STACK = {
    "types": "header l_t { bit<7> v; bit<1> end; }",
    "headers": "l_t[3] l;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) { 0: accept; default: more; }",
    "states": "state more { pkt.extract(h.l.next); transition select(h.l.last.end) {"
    " 1: accept; default: more; } }",
    "deparser": "pkt.emit(h.a); pkt.emit(h.l);",
}


def labels(*values: int) -> bytes:
    return bytes(v << 1 | (i == len(values) - 1) for i, v in enumerate(values))


def test_stacks_fill_up_and_overflow() -> None:
    sw = switch(**STACK, ingress=TO_1 + CODES + "if (h.l[1].isValid()) { h.a.x = 1; }"
                "h.a.y = (bit<8>) h.l[0].v;")  # fmt: skip
    assert sent(sw, packet(1) + labels(5)) == packet(1, 0, 5) + labels(5)
    assert sent(sw, packet(1) + labels(5, 6, 7)) == packet(1, 1, 5) + labels(5, 6, 7)
    assert sent(sw, packet(1) + labels(5, 6, 7, 8)) == packet(1, 1, 5, 3) + labels(5, 6, 7, 8)


@pytest.mark.parametrize(
    "code, wanted",
    [
        ("h.l.push_front(1);", labels(5, 6)),
        ("h.l.push_front(1); h.l[0].setValid(); h.l[0].v = 9;", bytes([18]) + labels(5, 6)),
        ("h.l.push_front(2);", bytes([10])),
        ("h.l.push_front(5);", b""),
        ("h.l.pop_front(1);", labels(6)),
        ("h.l.pop_front(4);", b""),
        ("h.l[2] = h.l[0]; h.l[0].v = 1;", bytes([2]) + labels(6) + bytes([10])),
        ("h.l[(bit<8>) h.a.kind].v = 3;", bytes([10]) + labels(3)),
        ("h.l[h.a.kind + 200].v = 3; h.a.x = (bit<8>) h.l[h.a.kind + 90].v;", labels(5, 6)),
    ],
)
def test_stack_operations(code: str, wanted: bytes) -> None:
    sw = switch(**STACK, ingress=TO_1 + code)
    assert sent(sw, packet(1) + labels(5, 6)) == packet(1) + wanted


def test_last_index_and_reading_past_the_ends() -> None:
    sw = switch(
        types=STACK["types"],
        headers="l_t[3] l; l_t[2] r;",
        parser="pkt.extract(h.a); pkt.extract(h.l.next); pkt.extract(h.l.next);"
        "h.a.x = (bit<8>) h.l.lastIndex; transition select(h.a.kind) {"
        " 1: empty; default: accept; }",
        states="state empty { h.a.y = 9; h.a.y = (bit<8>) h.r.last.v; transition accept; }",
        deparser="pkt.emit(h.a); pkt.emit(h.l);",
        ingress=TO_1 + CODES,
    )
    assert sent(sw, packet(0) + labels(1, 2)) == packet(0, 1) + labels(1, 2)
    assert sent(sw, packet(1) + labels(1, 2)) == packet(1, 1, 9, 3) + labels(1, 2)


# -- unions and varbits -------------------------------------------------------------------------

UNION = {
    "types": "header p_t { bit<8> v; } header q_t { bit<16> v; }header_union u_t { p_t p; q_t q; }",
    "headers": "u_t u;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) { 1: one; 2: two; default: accept; }",
    "states": "state one { pkt.extract(h.u.p); transition accept; }"
    "state two { pkt.extract(h.u.q); transition accept; }",
}


@pytest.mark.parametrize(
    "kind, code, wanted",
    [
        (1, "", b"A"),
        (2, "", b"AB"),
        (0, "", b""),
        (1, "h.u.q.setValid(); h.u.q.v = 0x3031;", b"01"),
        (2, "h.u.p = { 0x41 };", b"A"),
        (2, "h.u.q.setInvalid();", b""),
        (2, "p_t t; t.setInvalid(); h.u.p = t;", b"AB"),
        (2, "if (h.u.isValid()) { h.a.x = 1; }", b"AB"),
    ],
)
def test_unions_have_one_valid_header(kind: int, code: str, wanted: bytes) -> None:
    sw = switch(**UNION, ingress=TO_1 + code)
    data = b"AB"[:kind]
    x = int("h.a.x" in code)
    assert sent(sw, packet(kind) + data) == packet(kind, x) + wanted


def test_stacks_of_unions() -> None:
    sw = switch(
        types=UNION["types"],
        headers="u_t[2] us;",
        parser="pkt.extract(h.a); transition next;",
        states="state next { transition select(pkt.lookahead<bit<8>>()) {"
        " 0x70: p; 0x71: q; default: accept; } }"
        "state p { pkt.extract(h.us.next.p); transition next; }"
        "state q { pkt.extract(h.us.next.q); transition next; }",
        ingress=TO_1 + CODES + "h.us[0].q.v = h.us[0].q.v + 1;",
    )
    assert sent(sw, packet(payload=b"q1pz")) == packet(payload=b"q2pz")
    assert sent(sw, packet(payload=b"pppz")) == packet(0, 0, 0, 3, payload=b"pppz")


VARBIT = {
    "types": "header v_t { bit<8> before; varbit<32> options; bit<8> after; }",
    "headers": "v_t v;",
    "parser": "pkt.extract(h.a); pkt.extract(h.v, (bit<32>) h.a.kind); transition accept;",
}


def test_varbits_keep_their_length() -> None:
    sw = switch(**VARBIT, ingress=TO_1 + CODES + "h.v.after = h.v.after + h.v.before;")
    for size in (0, 8, 24, 32):
        options = bytes(range(size // 8))
        out = sent(sw, packet(size) + b"\2" + options + b"\3" + b"rest")
        assert out == packet(size) + b"\2" + options + b"\5" + b"rest"


def test_varbit_errors() -> None:
    sw = switch(**VARBIT, ingress=TO_1 + CODES)
    long = bytes(64)
    assert [error(sw, packet(n) + long) for n in (8, 12, 40)] == [0, 6, 4]
    assert error(sw, packet(16) + b"abc") == 1


def test_varbits_are_values() -> None:
    sw = switch(
        **VARBIT,
        metadata="v_t old;",
        ingress=TO_1 + "m.old = h.v; if (h.v.options == m.old.options) { h.a.x = 1; }"
        "h.v.options = m.old.options; m.old.setInvalid();",
    )
    data = packet(16) + b"\2ab\3"
    assert sent(sw, data) == packet(16, 1) + b"\2ab\3"
