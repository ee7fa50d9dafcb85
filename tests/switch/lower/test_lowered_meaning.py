"""The behaviour of lowered programs: evaluation order, copies in and out, exits, loops, sub-blocks.

Each case is a body of an ingress control over a header with fields a, b, c of 8 bits (1, 2 and 3
when it starts) and says what they are afterwards.
"""

from __future__ import annotations

import pytest

from gradplane.switch import Switch

TEMPLATE = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> c; }}
header_union U {{ h_t x; h_t y; }}
struct H {{ h_t h; h_t g; h_t[2] s; U u; }}
struct M {{ bit<8> x; bit<8> y; }}
{top}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    {parser_locals}
    state start {{ p.extract(hdr.h); {parser} transition accept; }}
}}
control V(inout H hdr, inout M m) {{ apply {{ }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    {locals}
    apply {{ sm.egress_spec = 1; {body} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

BUMP = "bit<8> bump(inout bit<8> z) { z = z + 1; return z; }"
ADD = "void add(inout bit<8> x, in bit<8> y) { x = x + y; }"
EXITS = """
control Sub(inout bit<8> x, out bit<8> y) {
    action go() { x = x + 10; exit; }
    action stay() { x = x + 20; }
    table t {
        key = { x : exact; }
        actions = { go; stay; }
        const entries = { 1 : stay(); }
        default_action = go;
    }
    apply { y = 5; t.apply(); y = 6; }
}
"""


def outcome(body: str, packet: bytes = bytes([1, 2, 3]), **parts: str) -> list[int]:
    slots = {"top": "", "locals": "", "parser": "", "parser_locals": ""}
    text = TEMPLATE.format(body=body, **(slots | parts))
    [(port, out)] = Switch("case.p4", text=text).process(1, packet)
    assert port == 1
    return list(out)


def test_arguments_are_evaluated_before_the_call_changes_them() -> None:
    # x is 1 when it is evaluated, y is 2 and a is 2 afterwards; then x, 1 + 2, is copied out
    assert outcome("add(hdr.h.a, bump(hdr.h.a));", top=BUMP + ADD) == [3, 2, 3]


def test_named_arguments_are_evaluated_as_written() -> None:
    assert outcome("add(y = bump(hdr.h.a), x = hdr.h.a);", top=BUMP + ADD) == [4, 2, 3]


def test_the_place_of_an_inout_argument_is_fixed_before_later_arguments() -> None:
    top = BUMP + ADD
    body = """
    hdr.s[0] = { 7, 0, 0 }; hdr.s[1] = { 9, 0, 0 }; m.x = 0;
    add(hdr.s[m.x].a, bump(m.x));
    hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a; hdr.h.c = m.x;
    """
    assert outcome(body, top=top) == [8, 9, 1]


def test_the_left_side_is_evaluated_first() -> None:
    body = """
    hdr.s[0] = { 0, 0, 0 }; hdr.s[1] = { 0, 0, 0 }; m.x = 0;
    hdr.s[m.x].a = bump(m.x);
    hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a; hdr.h.c = m.x;
    """
    assert outcome(body, top=BUMP) == [1, 0, 1]


def test_operands_are_evaluated_from_left_to_right() -> None:
    assert outcome("hdr.h.b = hdr.h.a + bump(hdr.h.a) + hdr.h.a;", top=BUMP) == [2, 5, 3]


def test_logical_operators_stop_early() -> None:
    body = """
    if (hdr.h.a == 9 && bump(hdr.h.b) == 3) { hdr.h.c = 0; }
    if (hdr.h.a == 1 || bump(hdr.h.b) == 3) { hdr.h.c = 7; }
    """
    assert outcome(body, top=BUMP) == [1, 2, 7]


def test_only_the_chosen_branch_is_evaluated() -> None:
    body = "m.x = hdr.h.a == 1 ? bump(hdr.h.b) : bump(hdr.h.c);"
    assert outcome(body, top=BUMP) == [1, 3, 3]


def test_compound_assignment_evaluates_its_target_once() -> None:
    body = """
    hdr.s[0] = { 1, 0, 0 }; hdr.s[1] = { 2, 0, 0 }; m.x = 0;
    hdr.s[bump(m.x)].a += 5;
    hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a; hdr.h.c = m.x;
    """
    assert outcome(body, top=BUMP) == [1, 7, 1]


def test_two_parameters_bound_to_one_place_are_copied_out_in_order() -> None:
    top = "void two(out bit<8> p, out bit<8> q) { p = 8; q = 9; }"
    assert outcome("two(hdr.h.a, hdr.h.a);", top=top) == [9, 2, 3]
    assert outcome("two(q = hdr.h.a, p = hdr.h.a);", top=top) == [9, 2, 3]


def test_aliases_do_not_see_each_other() -> None:
    top = "void f(inout bit<8> p, in bit<8> q) { p = 5; p = p + q; }"
    assert outcome("f(hdr.h.a, hdr.h.a);", top=top) == [6, 2, 3]


def test_a_parameter_bound_to_an_invalid_header_is_storage_of_its_own() -> None:
    top = "bit<8> f(out bit<8> p) { p = 5; return p; }"
    assert outcome("hdr.h.a = f(hdr.g.b);", top=top) == [5, 2, 3]


def test_an_out_parameter_starts_at_zero_each_time() -> None:
    top = "control C(out bit<8> r, in bool set) { apply { if (set) { r = 7; } } }"
    body = "c.apply(hdr.h.a, true); c.apply(hdr.h.b, false);"
    assert outcome(body, top=top, locals="C() c;") == [7, 0, 3]


def test_locals_of_a_block_do_not_outlive_its_call() -> None:
    top = "control C(inout bit<8> r) { bit<8> n; apply { n = n + 1; r = r + n; } }"
    body = "c.apply(hdr.h.a); c.apply(hdr.h.a);"
    assert outcome(body, top=top, locals="C() c;") == [3, 2, 3]


def test_a_return_copies_out() -> None:
    top = """
    control C(inout bit<8> r) { apply { r = 4; if (r == 4) { return; } r = 5; } }
    bit<8> f(out bit<8> p) { p = 6; if (p == 6) { return 7; } return 8; }
    """
    body = "C.apply(hdr.h.a); hdr.h.b = f(hdr.h.c); return; hdr.h.a = 0;"
    assert outcome(body, top=top) == [4, 7, 6]


def test_an_exit_in_an_action_called_directly_copies_out() -> None:
    locals_ = "action a(inout bit<8> q) { q = 9; exit; } action b() { a(hdr.h.a); hdr.h.b = 0; }"
    assert outcome("b(); hdr.h.c = 0;", locals=locals_) == [9, 2, 3]


@pytest.mark.parametrize(
    ("first", "expected"), [(1, [21, 6, 12]), (2, [12, 5, 2])], ids=["stay then go", "go"]
)
def test_an_exit_in_a_sub_controls_table_copies_out_for_the_caller(
    first: int, expected: list[int]
) -> None:
    body = "hdr.h.c = 2; s.apply(hdr.h.a, hdr.h.b); s.apply(hdr.h.c, m.x); hdr.h = { 0, 0, 0 };"
    assert outcome(body, bytes([first, 2, 3]), top=EXITS, locals="Sub() s;") == expected


def test_an_exit_two_controls_deep() -> None:
    top = (
        EXITS
        + """
    control Mid(inout bit<8> p) { Sub() s; bit<8> q; apply { s.apply(p, q); p = 0; } }
    """
    )
    body = "hdr.h.a = 2; mid.apply(hdr.h.a); mid.apply(hdr.h.b);"
    assert outcome(body, top=top, locals="Mid() mid;") == [12, 2, 3]


def test_table_keys_are_evaluated_in_order() -> None:
    locals_ = """
    action hit() { hdr.h.c = 8; }
    table t {
        key = {
            hdr.h.a : exact;
            bump(hdr.h.a) : exact @name("bumped");
            hdr.h.a : exact @name("after");
        }
        actions = { hit; NoAction; }
        const entries = { (1, 2, 2) : hit(); }
    }
    """
    assert outcome("t.apply();", top=BUMP, locals=locals_) == [2, 2, 8]


def test_bound_action_arguments_are_evaluated_when_the_action_runs() -> None:
    locals_ = """
    action set(inout bit<8> r, in bit<8> v, bit<8> k) { r = v + k; }
    table t { actions = { set(hdr.h.a, hdr.h.b); } default_action = set(hdr.h.a, hdr.h.b, 3); }
    """
    assert outcome("hdr.h.b = 7; t.apply();", locals=locals_) == [10, 7, 3]


def test_loops() -> None:
    body = """
    hdr.h = { 0, 0, 0 };
    for (bit<8> i = 0; i < 10; i += 1) {
        if (i == 2) { continue; }
        if (i == 5) { break; }
        hdr.h.a += i;
    }
    for (bit<8> i in 250 .. 255) { hdr.h.b += 1; }
    for (bit<8> i in 1 .. 3) {
        for (bit<8> j in { 1, i, 7 }) { if (j == i) { break; } hdr.h.c += j; }
    }
    """
    assert outcome(body) == [0 + 1 + 3 + 4, 6, 0 + 1 + 1]


def test_a_loops_range_is_evaluated_once() -> None:
    body = "hdr.h.b = 0; for (bit<8> i in 1 .. bump(hdr.h.a)) { hdr.h.a = 9; hdr.h.b += 1; }"
    assert outcome(body, top=BUMP) == [9, 2, 3]


def test_a_loop_over_a_stack_sees_what_it_was() -> None:
    body = """
    hdr.s[0] = { 4, 0, 0 }; hdr.s[1] = { 5, 0, 0 };
    for (h_t h in hdr.s) { hdr.h.a += h.a; hdr.s[1].a = 0; }
    """
    assert outcome(body) == [10, 2, 3]


def test_a_variable_of_a_loops_body_starts_anew() -> None:
    body = "for (bit<8> i in 1 .. 3) { bit<8> n; n = n + 1; hdr.h.a = n; }"
    assert outcome(body) == [1, 2, 3]


def test_switch_labels_fall_through_to_the_next_body() -> None:
    body = """
    switch (hdr.h.b) { 1: 2: { hdr.h.a = 7; } 3: { hdr.h.a = 8; } default: { hdr.h.a = 9; } }
    """
    assert outcome(body) == [7, 2, 3]
    assert outcome(body, bytes([1, 3, 3])) == [8, 3, 3]
    assert outcome(body, bytes([1, 4, 3])) == [9, 4, 3]


def test_constructor_parameters_distinguish_instances() -> None:
    top = "control C(inout bit<8> r)(bit<8> k, bool twice) { apply { r = twice ? k + k : k; } }"
    body = "c1.apply(hdr.h.a); c2.apply(hdr.h.b);"
    assert outcome(body, top=top, locals="C(5, true) c1; C(twice = false, k = 6) c2;") == [10, 6, 3]


TWO_FORMS = """
control Sub(inout bit<8> x)(bool large) {
    action add(bit<8> y) { x = x + y; }
    @name("t") table small_t { key = { x : exact; } actions = { add; } default_action = add(10); }
    @name("t") table large_t { key = { x : ternary; } actions = { add; } default_action = add(20); }
    apply { if (large) { large_t.apply(); } else { small_t.apply(); } }
}
"""


def test_of_tables_of_one_name_a_constant_may_keep_one() -> None:
    body = "one.apply(hdr.h.a); two.apply(hdr.h.b);"
    parts = {"top": TWO_FORMS, "locals": "Sub(true) one; Sub(false) two;"}
    assert outcome(body, **parts) == [21, 12, 3]
    text = TEMPLATE.format(body=body, parser="", parser_locals="", **parts)
    tables = Switch("case.p4", text=text).program.tables
    assert [table.name for table in tables] == ["I.one.t", "I.two.t"]


def test_a_sub_parser_applied_twice() -> None:
    top = """
    parser Q(packet_in p, out h_t h, inout bit<8> n) {
        bit<8> seen;
        state start { p.extract(h); seen = seen + 1; n = n + seen; transition accept; }
    }
    """
    calls = "q.apply(p, hdr.g, m.x); q.apply(p, hdr.s[0], m.x);"
    parts = {"parser_locals": "Q() q;", "parser": calls}
    body = "hdr.h.a = hdr.g.a; hdr.h.b = hdr.s[0].a; hdr.h.c = m.x;"
    assert outcome(body, bytes([1, 2, 3, 4, 5, 6, 7, 8, 9]), top=top, **parts) == [4, 7, 2]


def test_a_union_has_one_valid_header() -> None:
    body = """
    hdr.u.x = { 1, 1, 1 }; hdr.u.y.setValid();
    hdr.h.a = hdr.u.x.isValid() ? 8w1 : 0; hdr.h.b = hdr.u.y.isValid() ? 8w1 : 0;
    hdr.u = {#}; hdr.h.c = hdr.u.isValid() ? 8w1 : 0;
    """
    assert outcome(body) == [0, 1, 0]


def test_structs_and_headers_in_comparisons() -> None:
    body = """
    hdr.h.a = (hdr.h == (h_t){ 1, 2, 3 }) ? 8w1 : 0;
    hdr.h.b = (hdr.g == {#}) ? 8w1 : 0;
    hdr.h.c = (m == (M){ y = 0, ... } && { m.x, 1 } != { 1, m.x }) ? 8w1 : 0;
    """
    assert outcome(body) == [1, 1, 1]
