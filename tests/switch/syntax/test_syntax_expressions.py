"""Expressions: precedence, casts, generic calls, literals, lists, keysets, annotations."""

import pytest

from gradplane.switch.syntax import ast


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("255", "255"),
        ("0xFF", "255"),
        ("0Xf_F", "255"),
        ("0b1010", "10"),
        ("0B1_0", "2"),
        ("0o17", "15"),
        ("0O17", "15"),
        ("0d12", "12"),
        ("1_000", "1000"),
        ("007", "7"),
        ("8w255", "8w255"),
        ("8w0xFF", "8w255"),
        ("4s0b1010", "4s10"),
        ("16w1_000", "16w1000"),
        ("128w0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", f"128w{2**128 - 1}"),
        ("true", "true"),
        ("false", "false"),
        ('"a \\"b\\" \\\\ \\n \\q"', "'a \"b\" \\\\ \\n \\\\q'"),
        ('""', "''"),
        ("this", "this"),
        ("...", "..."),
        ("{#}", "{#}"),
        (".a", ".a"),
        ("error.NoMatch", "type error.NoMatch"),
    ],
)
def test_literals_and_names(expr, text, read):
    assert expr(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a * b + c", "((a * b) + c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a ++ b ++ c", "((a ++ b) ++ c)"),
        ("a |+| b |-| c", "((a |+| b) |-| c)"),
        ("a + b << c", "((a + b) << c)"),
        ("a << b & c", "((a << b) & c)"),
        ("a & b ^ c | d", "(((a & b) ^ c) | d)"),
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
        ("a | b < c", "((a | b) < c)"),
        ("a & b == c", "((a & b) == c)"),
        ("a < b == c > d", "((a < b) == (c > d))"),
        ("a == b && c != d || e", "(((a == b) && (c != d)) || e)"),
        ("a || b && c", "(a || (b && c))"),
        ("a / b % c", "((a / b) % c)"),
        ("a >> b >= c", "((a >> b) >= c)"),
        ("a > b", "(a > b)"),
        ("a > > b", None),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ? b ? c : d : e", "(a ? (b ? c : d) : e)"),
        ("a || b ? c + 1 : d", "((a || b) ? (c + 1) : d)"),
        ("-a.b", "(-a.b)"),
        ("!a[1]", "(!a[1])"),
        ("~a + b", "((~a) + b)"),
        ("- - a", "(-(-a))"),
        ("+a * -b", "((+a) * (-b))"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a[7:0]", "a[7:0]"),
        ("a[i +: 8]", "a[i +: 8]"),
        ("a[i + 1].b[3:2]", "a[(i + 1)].b[3:2]"),
        ("h.stack[0].next.last", "h.stack[0].next.last"),
    ],
)
def test_precedence(expr, errors, text, read):
    """As in the specification's table of operators; all binary operators are left-associative."""
    if read is None:
        assert 'found ">", expected an expression' in errors(f"const int x = {text};")
    else:
        assert expr(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("(bit<8>) x", "((bit<8>) x)"),
        ("(bit<8>) x + 1", "(((bit<8>) x) + 1)"),
        ("(bit<8>) -x", "((bit<8>) (-x))"),
        ("(bit<8>) x.y[3:0]", "((bit<8>) x.y[3:0])"),
        ("(bit<(N + 1)>) x", "((bit<(N + 1)>) x)"),
        ("(bit<8>)(int<8>) x", "((bit<8>) ((int<8>) x))"),
        ("(T) x", "((T) x)"),
        ("(.T) x", "((.T) x)"),
        ("(T) -x", "((T) (-x))"),
        ("(T) (x)", "((T) x)"),
        ("(T) {1, 2}", "((T) {1, 2})"),
        ("(S<bit<8>>) {a = 1}", "((S<bit<8>>) {a = 1})"),
        ("(tuple<bit<8>, T>) {1, 2}", "((tuple<bit<8>, T>) {1, 2})"),
        ("(bool) x", "((bool) x)"),
        ("(int) x", "((int) x)"),
        ("(E.A)", "E.A"),
        ("(E.A) + 1", "(E.A + 1)"),
        ("(error.NoMatch)", "type error.NoMatch"),
        ("(a) - b", "(a - b)"),
        ("(a) + (b)", "(a + b)"),
    ],
)
def test_casts(expr, text, read):
    before = "typedef bit<8> T; struct S<X> { X a; } enum E { A }"
    assert expr(text, before) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("f()", "f()"),
        ("f(1, x = 2, _, y = _, ...)", "f(1, x = 2, _, y = _, ...)"),
        ("f<bit<8>>(x)", "f<bit<8>>(x)"),
        ("p.lookahead<bit<16>>()", "p.lookahead<bit<16>>()"),
        ("m.emit<>(s)", "m.emit(s)"),
        ("p.lookahead<tuple<bit<8>, bit<(8)>>>()[0]", "p.lookahead<tuple<bit<8>, bit<8>>>()[0]"),
        ("f<_>(x)", "f<_>(x)"),
        ("f<T, _, void>(x)", "f<T, _, void>(x)"),
        ("f<list<T>>(x)", "f<list<T>>(x)"),
        ("f<G<T>>(x)", "f<G<T>>(x)"),
        ("f<G<G<T>>>(x)", "f<G<G<T>>>(x)"),
        ("a < b", "(a < b)"),
        ("a < b > (c)", "((a < b) > c)"),
        ("a < T.A", "(a < T.A)"),
        ("a < (T) b", "(a < ((T) b))"),
        ("a < T.A > (c)", "((a < T.A) > c)"),
        ("a < error.A", None),
        ("f<T>(a) < g<T>(b)", "(f<T>(a) < g<T>(b))"),
        ("G<T>(1)", "type G<T>(1)"),
        (".G<T>(1)", "type .G<T>(1)"),
        ("T(1)", "T(1)"),
        (".T.A", ".T.A"),
        ("G<T>.apply(x)", "type G<T>.apply(x)"),
        ("a >> b", "(a >> b)"),
    ],
)
def test_angle_brackets_are_types_only_before_a_type(expr, text, read):
    before = "enum T { A } extern G<X> { G(bit<8> n); }"
    assert expr(text, before) == (read or "(a < type error.A)")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{1}",
        "{1, 2}",
        "{{1, 2}, {3}}",
        "{1, ...}",
        "{a = 1}",
        "{a = 1, b = {c = 2}}",
        "{a = 1, ...}",
        "{a, b}",
    ],
)
def test_lists_and_structs_with_and_without_trailing_comma(expr, text):
    assert expr(text) == text
    if text != "{}":
        assert expr(text[:-1] + ",}") == text


@pytest.mark.parametrize(
    "word",
    ["apply", "key", "actions", "state", "entries", "type", "priority", "list", "pragma"],
)
def test_words_that_are_keywords_elsewhere_are_names_here(expr, declarations, word):
    assert expr(f"{word} + a.{word}") == f"({word} + a.{word})"
    assert declarations(f"struct S {{ bit<8> {word}; }}")[0].fields[0].name == word
    assert declarations(f"const bit<8> {word} = 1;")[0].name == word


def test_a_variable_named_like_a_type_hides_it(statements):
    before = "typedef bit<8> T;"
    inner = "bit<8> T = 1; x = T < y; x = (T) - y;"
    assert statements(inner, before)[1:] == [
        "x = (T < y);",
        "x = (T - y);",
    ]
    after = "{ bit<8> T = 1; } x = (T) - y;"
    assert statements(after, before)[1] == "x = ((T) (-y));"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1", "1"),
        ("(1)", "1"),
        ("_", "default"),
        ("default", "default"),
        ("(_)", "default"),
        ("1 &&& 3", "(1 &&& 3)"),
        ("(1 &&& 3)", "(1 &&& 3)"),
        ("1 .. 3", "(1 .. 3)"),
        ("1..3", "(1 .. 3)"),
        ("(1, 2)", "tuple(1, 2)"),
        ("(1, _, 2 &&& 3, 4 .. 5, default)", "tuple(1, default, (2 &&& 3), (4 .. 5), default)"),
        ("(1, 2,)", "tuple(1, 2)"),
        ("(a + 1) * 2", "((a + 1) * 2)"),
        ("(bit<8>) 1", "((bit<8>) 1)"),
        ("((a), (b))", "tuple(a, b)"),
        ("{1, 2}", "{1, 2}"),
        ("a ? b : c", "(a ? b : c)"),
    ],
)
def test_keysets(declarations, shown, text, read):
    from_select = declarations(
        f"parser P() {{ state start {{ transition select(a) {{ {text} : accept; }} }} }}"
    )[0]
    case = from_select.states[0].transition.cases[0]
    assert case.state == "accept"
    table = f"control C() {{ table t {{ entries = {{ {text} : a(); }} }} apply {{}} }}"
    entry = declarations(table)[0].locals[0].entries[0]
    assert [shown(case.keyset), shown(entry.keyset)] == [read, read]


def _annotation(declarations, text: str) -> ast.Annotation:
    (found,) = declarations(f"{text} const int x = 1;")[0].annotations
    return found


@pytest.mark.parametrize(
    ("text", "body", "exprs", "pairs"),
    [
        ("@a", "", None, None),
        ("@a()", "", "[]", None),
        ('@name(".x")', '".x"', "['.x']", None),
        ("@a(1, b + 2)", "1 , b + 2", "[1, (b + 2)]", None),
        ("@a(x = 1, y = z)", "x = 1 , y = z", None, "{x: 1, y: z}"),
        ("@a(any (text) ; $ # { if } at all)", "any ( text ) ; $ # { if } at all", None, None),
        ('@t("uri", string)', '"uri" , string', None, None),
        ("@pragma a b 1", "b 1", None, None),
    ],
)
def test_free_annotations(declarations, shown, text, body, exprs, pairs):
    """The body is kept as text, and as expressions or pairs if it can be parsed as such."""
    found = _annotation(declarations, text + "\n")
    assert found.body == body
    assert not found.structured
    assert (found.exprs and shown(found.exprs)) == (exprs if exprs != "[]" else [])
    assert (found.pairs and shown(found.pairs)) == pairs


@pytest.mark.parametrize(
    ("text", "body", "exprs", "pairs"),
    [
        ("@a[]", "", [], None),
        ("@a[1, x, true]", "1 , x , true", "[1, x, true]", None),
        ("@a[1,]", "1 ,", "[1]", None),
        ("@a[x = 1, y = 2]", "x = 1 , y = 2", None, "{x: 1, y: 2}"),
        ("@a[x = 1,]", "x = 1 ,", None, "{x: 1}"),
    ],
)
def test_structured_annotations(declarations, shown, text, body, exprs, pairs):
    found = _annotation(declarations, text)
    assert (found.body, found.structured) == (body, True)
    assert (found.exprs and shown(found.exprs)) == exprs
    assert (found.pairs and shown(found.pairs)) == pairs


def test_a_pragma_ends_with_its_line(declarations):
    found = declarations("@pragma name some words\n@b @c(1) const int x = 1;")[0].annotations
    assert [(a.name, a.body) for a in found] == [("name", "some words"), ("b", ""), ("c", "1")]


def test_expressions_know_their_place(declarations):
    value = declarations("const int x = a.b + f(1,\n  2) * -c[3];")[0].value
    places = {}
    for node in (value, value.left, value.right, value.right.left, value.right.right):
        places[type(node).__name__] = (str(node.span), node.span.end)
    assert places == {
        "Binary": ("t.p4:1:21", 22),  # the one of *, whose end is on another line
        "Member": ("t.p4:1:15", 18),
        "Call": ("t.p4:1:21", 22),
        "Unary": ("t.p4:2:8", 13),
    }
