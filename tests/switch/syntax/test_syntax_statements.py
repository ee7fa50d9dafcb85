"""Statements and the declarations among them. Most read as they are written."""

import pytest

BEFORE = """
typedef bit<8> T;
struct S { bit<8> a; }
extern G<X> { G(bit<8> n); void m(); }
control D()(bit<8> n) { apply {} }
"""


@pytest.mark.parametrize(
    "text",
    [
        "x = 1;",
        "x.y[3].z = a;",
        "x[7:0] = 1;",
        "x[i +: 4] = 1;",
        ".x = 1;",
        "this.x = 1;",
        "f();",
        "f<bit<8>>(x);",
        "a.b.c(1);",
        "t.apply();",
        "D.apply(x);",
        ".D.apply();",
        ";",
        "exit;",
        "return;",
        "return (x + 1);",
        "break;",
        "continue;",
        "{ }",
        "{ x = 1; { ; } }",
        "@atomic { x = 1; }",
        "@atomic @b(1) { }",
        "if (a) x = 1;",
        "if (a) { x = 1; } else y = 2;",
        "if (a) { } else if (b) { } else { }",
        "if (a) if (b) x(); else y();",
        "switch (x) { }",
        "switch (t.apply().action_run) { a: { x(); } b: c: { } .d: { } default: @z { y(); } }",
        "switch (x) { 1: 2: { } ((bit<8>) 3): { } (a ? b : c): { } }",
        "for (; a; ) x();",
        "for (bit<8> i = 0; (i < 8); i += 1) { f(i); }",
        "for (bit<8> i = 0, T j = 1, k = 2, f(); (i < j); i = (i + 1), g()) { }",
        "for (i = 0; (i < 3); i += 1) break;",
        "for (bit<8> i in xs) f(i);",
        "for (T i in (0 .. 7)) { }",
        "for (@x T i in (a .. (b + 1))) { }",
        "for (T i in xs) { continue; }",
        "@unroll for (T i in xs) { }",
    ],
)
def test_a_statement(statements, text):
    source = text.replace("(0 .. 7)", "0..7").replace("(a .. (b + 1))", "a .. b + 1")
    assert statements(source, BEFORE) == [text]


@pytest.mark.parametrize(
    "op", ["=", "+=", "-=", "|+|=", "|-|=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="]
)
def test_assignments(statements, op):
    assert statements(f"x.y {op} a + 1;") == [f"x.y {op} (a + 1);"]


def test_brackets_around_a_target(statements):
    assert statements("(x) = 1;") == ["x = 1;"]


@pytest.mark.parametrize(
    "text",
    [
        "bit<8> x;",
        "bit<8> x = 1;",
        "int<(N + 1)> x;",
        "varbit<32> x;",
        "bool x = true;",
        "int x = 3;",
        "bit x;",
        "string x;",
        "@hidden bit<8> x;",
        "T x = 1;",
        ".T x;",
        "S x = {1};",
        "S[4] x;",
        "G<T>[4] x;",
        "tuple<T, bit<8>> x = {1, 2};",
        "tuple<> x;",
        "list<T> x;",
        "error x = type error.NoMatch;",
        "match_kind x;",
        "G<bit<8>>(1) x;",
        "D(1) x;",
        "D(n = 1) x;",
        '@name("g") G<T>(1) x;',
        "const T x = 1;",
        "@a const bit<8> x = 1;",
        "unknown_t x;",  # rejected by the checker, whose message is better
    ],
)
def test_a_declaration(statements, text):
    assert statements(text.replace("type error", "error"), BEFORE) == [text]


def test_a_generic_control_applied_directly(statements):
    assert statements("G<T>.apply(x);", BEFORE) == ["type G<T>.apply(x);"]


def test_long_chains_of_else_are_fine(statements):
    """Generated programs have them."""
    (text,) = statements("if (a) {} " + "else if (b) {} " * 150)
    assert text.count("else if (b) { }") == 150
