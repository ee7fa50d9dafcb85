"""Control flow, assignments and tables, run from source."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from v1programs import packet, switch

from gradplane.switch import Switch
from gradplane.switch.runtime.control_messages import Fault

TO_1 = "s.egress_spec = 1; "


def sent(sw: Switch, *fields: int) -> tuple[int, ...]:
    ((_, out),) = sw.process(0, packet(*fields))
    return tuple(out)


# -- control flow -------------------------------------------------------------------------------


def test_exit_ends_the_control_from_anywhere() -> None:
    sw = switch(
        ingress_locals="action stop() { h.a.x = 1; if (h.a.kind == 1) { exit; } h.a.y = 2; }"
        "table t { actions = { stop; } default_action = stop(); }",
        ingress=TO_1 + "if (h.a.kind < 3) {"
        " switch (t.apply().action_run) { stop: { h.a.z = 3; } } }"
        "if (h.a.kind == 5) { exit; } h.a.kind = 9;",
        egress="h.a.z = h.a.z + 1;",
    )
    assert sent(sw, 0) == (9, 1, 2, 4)
    assert sent(sw, 1) == (1, 1, 0, 1)
    assert sent(sw, 5) == (5, 0, 0, 1)


def test_return_leaves_only_its_action_or_control() -> None:
    sw = switch(
        types="control Inner(inout a_t a) { apply {"
        " a.x = 1; if (a.kind == 1) { return; } a.x = 2; } }",
        ingress_locals="Inner() inner; action act() { if (h.a.kind == 2) { return; } h.a.y = 7; }",
        ingress=TO_1 + "inner.apply(h.a); act(); if (h.a.kind == 3) { return; } h.a.z = 5;",
    )
    assert [sent(sw, k)[1:] for k in (0, 1, 2, 3)] == [(2, 7, 5), (1, 7, 5), (2, 0, 5), (2, 7, 0)]


def test_switch_on_values() -> None:
    sw = switch(
        ingress=TO_1 + "switch (h.a.kind) { 1: 2: { h.a.x = 1; } 3: { h.a.x = 2; }"
        " default: { h.a.x = 9; } }"
    )
    assert [sent(sw, k)[1] for k in range(5)] == [9, 1, 1, 2, 9]


def test_loops_with_break_and_continue() -> None:
    sw = switch(
        ingress=TO_1 + "for (bit<8> i = 0; i < h.a.kind; i = i + 1) {"
        " if (i == 2) { continue; } if (i == 5) { break; } h.a.x = h.a.x + i; }"
        "for (bit<8> j in 1 .. 3) { h.a.y = h.a.y + j; }"
    )
    assert [sent(sw, k)[1:3] for k in (0, 3, 4, 9)] == [(0, 6), (1, 6), (4, 6), (8, 6)]


def test_an_endless_loop_drops_the_packet() -> None:
    sw = switch(ingress=TO_1 + "for (; true; ) { if (h.a.kind != 1) { break; } h.a.x = 2; }")
    assert sent(sw, 0) == (0, 0, 0, 0)
    assert sw.process(0, packet(1)) == []
    (fault,) = sw.messages()
    assert isinstance(fault, Fault)
    assert fault.text.startswith("packet dropped: test.p4:")
    assert fault.text.endswith(": a loop ran more than 1048576 times")


def test_long_else_if_chains_run_flat() -> None:
    chain = " else ".join(f"if (h.a.x == {i} && h.a.kind == 1) {{ h.a.y = {i}; }}"
                          for i in range(200))  # fmt: skip
    sw = switch(ingress=TO_1 + chain + " else { h.a.z = 7; }")
    assert sent(sw, 1, 199) == (1, 199, 199, 0)
    assert sent(sw, 0, 199) == (0, 199, 0, 7)


# -- assignments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, wanted",
    [
        ("h.a.x[6:3] = h.a.y[3:0];", (1, 0b1_0011_111, 0b0011, 4)),
        ("bit<16> w = h.a.y ++ h.a.z; h.a.x = w[11:4];", (1, 0x30, 3, 4)),
        ("bit<8> t = h.a.y; h.a.y = h.a.z; h.a.z = t;", (1, 255, 4, 3)),
        ("h.a = { h.a.z, h.a.y, h.a.x, h.a.kind };", (4, 3, 255, 1)),
        ("a_t old = h.a; h.a.x = 0; h.a.z = old.x;", (1, 0, 3, 255)),
        ("h.a.x = h.a.x |+| 9; h.a.y = h.a.y |-| 9;", (1, 255, 0, 4)),
        ("int<8> n = (int<8>) h.a.x; h.a.y = (bit<8>) (n >> 3); h.a.z = h.a.x >> 3;",
         (1, 255, 255, 31)),
        ("h.a.x = h.a.kind == 1 ? h.a.z : h.a.y; h.a.y = h.a.x << 200;", (1, 4, 0, 4)),
        ("bool b = h.a.x > 200 && !(h.a.y == 4); if (b) { h.a.z = (bit<8>) (bit<1>) b; }",
         (1, 255, 3, 1)),
        ("h.a.x = -h.a.y; h.a.y = ~h.a.z;", (1, 253, 251, 4)),
        ("bit<8> u; h.a.x = u; a_t v; h.a.y = v.y; if (v.isValid()) { h.a.z = 0; }", (1, 0, 0, 4)),
    ],
)  # fmt: skip
def test_assignments(code: str, wanted: tuple[int, ...]) -> None:
    assert sent(switch(ingress=TO_1 + code), 1, 255, 3, 4) == wanted


def test_an_action_call_copies_its_arguments_in_and_out() -> None:
    sw = switch(
        ingress_locals="action swap(inout bit<8> p, inout bit<8> q, out bit<8> r) {"
        " bit<8> t = p; p = q; q = t; r = p - q; }",
        ingress=TO_1 + "swap(h.a.x, h.a.y, h.a.z); swap(h.a.kind, h.a.kind, h.a.kind);",
    )
    assert sent(sw, 9, 1, 5, 7) == (0, 5, 1, 4)


def test_validity_is_assigned_with_the_header() -> None:
    sw = switch(
        headers="a_t b;",
        ingress=TO_1 + "if (h.a.kind == 1) { h.b = h.a; h.a.setInvalid(); } h.b.x = 5;",
    )
    assert sent(sw, 0, 1, 2, 3) == (0, 1, 2, 3)
    assert sent(sw, 1, 1, 2, 3) == (1, 5, 2, 3)


# -- tables -------------------------------------------------------------------------------------

ACTIONS = "action set(bit<8> v) { h.a.z = v; } action none() {}"


def test_hit_miss_and_action_run() -> None:
    sw = switch(
        ingress_locals=ACTIONS + "table t { key = { h.a.x: exact; } actions = { set; none; }"
        " default_action = none(); }"
        "table u { key = { h.a.x: exact; } actions = { set; none; } default_action = none(); }",
        ingress=TO_1 + "if (t.apply().hit) { h.a.y = 1; }"
        "switch (u.apply().action_run) { set: { h.a.y = h.a.y + 10; } default: { h.a.kind = 2; } }",
    )
    sw.table("t").add({"x": 5}, "set", {"v": 50})
    sw.table("u").add({"x": 6}, "set", {"v": 60})
    assert [sent(sw, 0, x) for x in (5, 6, 7)] == [(2, 5, 1, 50), (0, 6, 10, 60), (2, 7, 0, 0)]


def test_keys_are_expressions_of_the_moment() -> None:
    sw = switch(
        ingress_locals=ACTIONS + 'table t { key = { h.a.x + 1: exact @name("sum");'
        ' h.a.y[3:2]: exact @name("bits"); h.a.isValid(): exact @name("there");'
        ' (int<8>) h.a.kind: exact @name("signed"); } actions = { set; none; } }',
        ingress=TO_1 + "t.apply();",
    )
    sw.table("t").add({"sum": 0, "bits": 3, "there": 1, "signed": -2}, "set", {"v": 1})
    assert sent(sw, 254, 255, 0xC) == (254, 255, 0xC, 1)
    assert sent(sw, 254, 255, 0x8) == (254, 255, 0x8, 0)


def test_entries_of_the_source() -> None:
    sw = switch(
        ingress_locals=ACTIONS + "table t { key = { h.a.x: ternary; h.a.y: range; }"
        " actions = { set; none; } const entries = {"
        " (0x10 &&& 0xF0, 1 .. 4): set(1); (0x15, _): set(2); (_, 9): set(3); } }"
        "table u { key = { h.a.kind: lpm; } actions = { set; none; } default_action = none();"
        " entries = { const 0x80 &&& 0x80: set(8); 0xC0 &&& 0xC0: set(9); } }",
        ingress=TO_1 + "t.apply(); u.apply();",
    )
    cases = [(0x15, 2), (0x15, 5), (0x15, 9), (0x20, 9), (0x20, 8)]
    assert [sent(sw, 0, x, y)[3] for x, y in cases] == [1, 2, 2, 3, 0]
    assert [sent(sw, k)[3] for k in (0x7F, 0x80, 0xC0)] == [0, 8, 9]


def test_default_actions_may_change_while_packets_pass() -> None:
    sw = switch(
        ingress_locals=ACTIONS + "table t { key = { h.a.x: exact; } actions = { set; none; }"
        " default_action = set(4); }",
        ingress=TO_1 + "t.apply();",
    )
    table = sw.table("t")
    assert sent(sw)[3] == 4
    table.set_default("none")
    assert sent(sw)[3] == 0
    table.set_default()
    assert sent(sw)[3] == 4
    table.add({"x": 1}, "set", {"v": 1})
    table.modify({"x": 1}, "set", {"v": 2})
    assert sent(sw, 0, 1)[3] == 2
    table.remove({"x": 1})
    assert sent(sw, 0, 1)[3] == 4 and table.entries() == []


# -- any packet ---------------------------------------------------------------------------------

EVERYTHING = {
    "types": "header l_t { bit<3> v; bit<4> w; bit<1> end; }"
    "header o_t { bit<8> size; varbit<64> data; } header p_t { bit<16> v; }"
    "header_union u_t { p_t p; l_t l; }",
    "headers": "l_t[4] l; o_t o; u_t u;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) {"
    " 0 .. 63: stack; 64 .. 127: vary; 128 .. 191: either; 1 &&& 1: stack; }",
    "states": "state stack { pkt.extract(h.l.next); transition select(h.l.last.end) {"
    " 1: vary; default: stack; } }"
    "state vary { pkt.extract(h.o, (bit<32>) pkt.lookahead<bit<8>>()); transition either; }"
    "state either { pkt.advance((bit<32>) h.a.x); transition select(pkt.lookahead<bit<1>>()) {"
    " 1: one; default: two; } }"
    "state one { pkt.extract(h.u.p); transition accept; }"
    "state two { pkt.extract(h.u.l); transition accept; }",
    "ingress": "s.egress_spec = (bit<9>) h.a.y; h.l[h.a.z].v = 1; h.l.push_front(1);"
    "if (h.u.p.isValid()) { h.u.l.setValid(); } h.l[3] = h.l[h.a.y & 3];",
}


@given(st.binary(max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_packet_makes_it_raise(data: bytes) -> None:
    port_and_packets = SWITCH.process(0, data)
    assert all(0 <= port < 512 for port, _ in port_and_packets)
    assert SWITCH.trace(0, data).outputs == port_and_packets


SWITCH = switch(**EVERYTHING)


def test_deeply_nested_programs_stay_within_the_recursion_limit() -> None:
    depth = 60
    code = "".join(f"if (h.a.x > {i}) {{ h.a.y = {i}; " for i in range(depth)) + "}" * depth
    assert sent(switch(ingress=TO_1 + code), 0, 200)[2] == depth - 1
    assert sys.getrecursionlimit() == 1000
