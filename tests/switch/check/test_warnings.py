"""What is legal and surely wrong is told, with its place, and does not stop the compiler."""

from __future__ import annotations

import pytest

from gradplane.switch.compiler import compile_source

TEMPLATE = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct H {{ h_t h; h_t g; h_t[2] s; }}
struct M {{ bit<8> x; bool f; }}
{top}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition {transition} }}
    {states}
}}
control V(inout H hdr, inout M m) {{ apply {{ }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {body} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def warnings(body: str = "", **parts: str) -> list[str]:
    slots = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    text = TEMPLATE.format(body=body, **(slots | parts))
    return [w.message for w in compile_source("case.p4", text=text).warnings]


def test_the_place_is_told() -> None:
    text = TEMPLATE.format(
        top="", locals="", states="", transition="accept;", body="bit<8> n; m.x = n;"
    )
    [warning] = compile_source("case.p4", text=text).warnings
    assert warning.render({"case.p4": text.splitlines(keepends=True)}) == (
        "case.p4:15:29: warning: n is read before it is given a value\n"
        "        apply { bit<8> n; m.x = n; }\n"
        "                                ^"
    )


@pytest.mark.parametrize(
    "body",
    [
        "bit<8> n; m.x = n;",
        "bit<8> n; if (m.f) { m.x = n + 1; } n = 2;",
        "bit<8> n; n += 1;",
        "bit<8> n; m.x = m.f ? n : 0;",
        "M n; m = n;",
    ],
)
def test_unset_variable(body: str) -> None:
    assert warnings(body) == ["n is read before it is given a value"]


@pytest.mark.parametrize(
    "body",
    [
        "bit<8> n; n = 1; m.x = n;",
        "bit<8> n; if (m.f) { n = 1; } m.x = n;",
        "bit<8> n; set(n); m.x = n;",
        "bit<8> n; for (bit<8> i in 1 .. 3) { if (i > 1) { m.x = n; } n = i; }",
        "bit<8> n; for (n in 1 .. 3) { m.x = n; }",
        "M n; n.x = 1; m = n;",
        "bit<8> n; n[3:0] = 1; m.x = n;",
        "h_t n; m.f = n == hdr.h;",
        "M n; m.x = (bit<8>) n.minSizeInBits();",
    ],
)
def test_variable_that_may_be_set(body: str) -> None:
    assert warnings(body, top="void set(out bit<8> r) { r = 1; }") == []


def test_a_controls_variable_is_unset_if_nothing_sets_it() -> None:
    locals_ = "bit<8> n; bit<8> k; action a() { m.x = n + k; } action b() { k = 1; }"
    assert warnings("a(); b();", locals=locals_) == ["n is read before it is given a value"]


def test_table_never_applied() -> None:
    table = "table t { actions = { NoAction; } }"
    assert warnings(locals=table) == ["table t is never applied"]
    assert warnings(locals=f'@noWarn("unused") {table}') == []
    assert warnings("if (m.f) { t.apply(); }", locals=table) == []


def test_header_nothing_makes_valid() -> None:
    assert warnings("m.x = hdr.g.a;") == ["header g is used and nothing makes it valid"]
    assert warnings("m.x = hdr.s[1].a;") == ["header s is used and nothing makes it valid"]
    assert warnings("hdr.g.a = 1;") == ["header g is used and nothing makes it valid"]


@pytest.mark.parametrize(
    "made",
    [
        "hdr.g.setValid();",
        "hdr.g = hdr.h;",
        "hdr.g = { 1, 2 };",
        "copy(hdr.g);",
        "make(hdr);",
        "H other; hdr = other;",
    ],
)
def test_header_made_valid(made: str) -> None:
    top = "void copy(out h_t h) { h = { 1, 2 }; } void make(inout H all) { all.g.setValid(); }"
    assert warnings(f"{made} m.x = hdr.g.a;", top=top) == []


def test_isvalid_alone_is_fine() -> None:
    assert warnings("if (hdr.g.isValid()) { m.x = 1; }") == []


def test_numbers_that_do_not_fit() -> None:
    assert warnings("m.x = 300;") == ["300 does not fit bit<8>: 44 is taken"]
    assert warnings("m.x = 8w256;") == ["256 does not fit bit<8>: its low 8 bits are taken"]


def test_states_and_cases_never_reached() -> None:
    states = "state lost { transition accept; }"
    assert warnings(states=states) == ["state lost is never reached"]
    select = "select(hdr.h.a) { 1: accept; default: accept; 2: reject; }"
    assert warnings(transition=select) == ["this case is never reached: default is before it"]


def test_empty_range() -> None:
    select = "select(hdr.h.a) { 5 .. 1: accept; default: accept; }"
    assert warnings(transition=select) == ["the range 5..1 is empty: the lower bound first"]
