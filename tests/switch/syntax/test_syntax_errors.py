"""Complete error messages for wrong programs. In the programs, «» marks the place."""

import pytest


def marked_report(program: str, message: str, hint: str = "") -> str:
    line = next(text for text in program.split("\n") if "«" in text)
    before, inside, _ = line.replace("»", "«").split("«")
    shown = line.replace("«", "").replace("»", "")
    row = program[: program.index("«")].count("\n") + 1
    out = [
        f"t.p4:{row}:{len(before) + 1}: error: {message}",
        f"    {shown}",
        f"    {' ' * len(before)}{'^' * max(1, len(inside))}",
    ]
    return "\n".join([*out, f"    {hint}"] if hint else out)


def unmarked(program: str) -> str:
    return program.replace("«", "").replace("»", "")


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        ("header h { bit<8> a «bit»<8> b; }", '";"'),
        ("header h { bit<8> a; }«}»", '";", a declaration'),
        ("«5»", '";", a declaration'),
        ("struct s { «5» a; }", '"}", a type'),
        ("struct s { varbit «a»; }", '"<"'),
        ("struct s { bit<«>» a; }", "an expression"),
        ("struct s { bit<8«;» }", '">"'),
        ("const tuple<bit<8> «x» = 1;", '",", ">"'),
        ("struct s<«>» { }", "a name"),
        ("typedef bit<8>«;»", "a name"),
        ("enum E { «}»", "a name"),
        ("enum E { A «=» 1 }", '",", "}"'),
        ("enum bit<8> E { A«,» B = 2 }", '"="'),
        ("error { A «B» }", '",", "}"'),
        ("match_kind { «}»", "a name"),
        ("bit<8> x«;»", '"<", "("'),
        ("void f(in bit<8> x,«)» {}", "a type"),
        ("void f(bit<8>«)» {}", "a name"),
        ("package P<T>() «{» }", '";"'),
        ("extern E { void f() «{» } }", '";"'),
        ("P() «;»", "a name"),
        ("E() e = «5»;", '"{"'),
        ("E() e = { «5» };", '"}", a type'),
        ("@«5» const int x = 1;", "a name"),
        ("@a[1 «2»] const int x = 1;", '",", "]", an operator'),
        ("const int x = «;»", "an expression"),
        ("const int x = 1 «2»;", '";", an operator'),
        ('const int x = 1 «"a"»;', '";", an operator'),
        ("const int x = 5 +«»", "an expression"),
        ("const int x = a ? b«;»", '":", an operator'),
        ("const int x = {1, 2 «3»};", '",", "}", an operator'),
        ("const int x = {a = 1, b«}»;", '"="'),
        ("const int x = a[1«;»", '":", "+:", "]", an operator'),
        ("const int x = a.«1»;", "a name"),
        ("const int x = error«;»", '"."'),
        ("const int x = «bit»<8> 5;", "an expression"),
        ("const int x = f<«bit»<8>(y);", "an expression"),
        ("const int x = f(1, «)»;", '"_", an expression'),
        ("parser P() { «}»", '"state", a declaration'),
        ("parser P() { state start { } «bit»<8> x; }", '"}", "state"'),
        ("parser P() { state s { transition «;» } }", '"select", a name'),
        ("parser P() { state s { transition a; «b»(); } }", '"}"'),
        ("parser P() { state s { transition select(a) { 1: x «}» } }", '";"'),
        ("parser P() { state s { «5»; } }", '"}", "transition", a statement'),
        ("control C() { bit<8> x; «}»", '"apply", a declaration'),
        ("control C() { «5» apply { } }", '"}", "apply", "action", "table", a declaration'),
        ("control C() { apply { } «action» a() { } }", '"}"'),
        ("control C() { action a «{» } apply { } }", '"("'),
        (
            "control C() { table t { «5» } apply { } }",
            '"}", "const", "key", "actions", "entries", a property',
        ),
        ("control C() { table t { size «3»; } apply { } }", '"="'),
        ("control C() { table t { key = { a : «5»; } } apply { } }", "a name"),
        ("control C() { table t { key = { a «exact»; } } apply { } }", '":", an operator'),
        ("control C() { table t { actions = { a «}» } apply { } }", '"(", ";"'),
        ("control C() { table t { default_action = «1»; } apply { } }", '".", a name'),
        (
            "control C() { table t { entries = { 1 «2»; } } apply { } }",
            '"&&&", "..", ":", an operator',
        ),
        (
            "control C() { table t { entries = { priority = «x» : 1 : a; } } apply { } }",
            '"(", an integer',
        ),
        ("control C() { apply { «)» } }", '"}", a statement'),
        ("control C() { apply { x = 1 «}» }", '";", an operator'),
        ("control C() { apply { x«;» } }", '"(", ".", "[", an assignment operator'),
        ("control C() { apply { x «+» 1; } }", '"(", ".", "[", an assignment operator'),
        ("control C() { apply { return «}» }", '";", an expression'),
        ("control C() { apply { exit «1»; } }", '";"'),
        ("control C() { apply { if (a «{» } } }", '")", an operator'),
        ("control C() { apply { @a «x» = 1; } }", '"(", "[", "{", "for", a declaration'),
        ("control C() { apply { switch (x) { default «{» } } } }", '":"'),
        (
            "control C() { apply { switch (x) { «{»1} : { } } } }",
            '"}", "default", an expression without braces',
        ),
        ("control C() { apply { for (x«)» { } } }", '"(", ".", "[", an assignment operator'),
        ("control C() { apply { for (@a «x» = 1; a; ) { } } }", '"(", "[", a type'),
        ("control C() { apply { for (x = 1 «x» < 3; ) { } } }", '",", ";", an operator'),
    ],
)
def test_found_and_expected(errors, program, wanted):
    """The message names what was found and everything that would be accepted."""
    found = program.replace("»", "«").split("«")[1]
    shown = "end of file" if not found else found if found[0] == '"' else f'"{found}"'
    lead = "expected one of: " if ", " in wanted else "expected "
    message = f"found {shown}, {lead}{wanted}"
    assert errors(unmarked(program)) == marked_report(program, message)


@pytest.mark.parametrize(
    ("program", "message", "hint"),
    [
        (
            "struct «select» { }",
            'found "select", expected a name',
            '"select" is a keyword and cannot be a name',
        ),
        (
            "const int x = («foo») y;",
            '"foo" is not a type',
            "a cast needs a type that is declared above",
        ),
        ("«@a»(1", 'annotation "@a" has no closing ")"', ""),
        (
            "extern E { «F»(); }",
            '"F" has no result type',
            'a constructor is named "E"; a method has a result type before its name',
        ),
        ("parser P() { state s { «exit»; } }", 'a parser state cannot contain "exit"', ""),
        ("parser P() { state s { «for» (;a;) { } } }", 'a parser state cannot contain "for"', ""),
        (
            "control C() { table t { @a «key» = { } } apply { } }",
            '"key" takes no annotation and no "const"',
            "",
        ),
        (
            "control C() { table t { const «actions» = { } } apply { } }",
            '"actions" takes no annotation and no "const"',
            "",
        ),
        (
            "control C() { apply { «f(1)» = 1; } }",
            "this cannot be assigned to",
            "only a variable, field, element or slice can be assigned to",
        ),
        (
            "control C() { apply { if (a) «bit<8> y»; } }",
            "a declaration cannot stand alone here",
            "put it in { }",
        ),
        (
            "struct S {\n  bit<8> x;«»\n",  # the end is reported where the last token ends
            'found end of file, expected "}"',
            'the "{" at t.p4:1:10 is not closed',
        ),
        (
            "control C() {\n  apply { x = 1;\n}\n«control» D() { apply { } }",
            'found "control", expected "}"',
            'the "{" at t.p4:1:13 is not closed',
        ),
    ],
)
def test_with_a_hint(errors, program, message, hint):
    assert errors(unmarked(program)) == marked_report(program, message, hint)


def messages(report: str) -> list[str]:
    return [line for line in report.split("\n") if line.startswith("t.p4:")]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "const int x = {1, 2 3};\nconst int y = ;\nconst int z = 1;",
            [
                't.p4:1:21: error: found "3", expected one of: ",", "}", an operator',
                't.p4:2:15: error: found ";", expected an expression',
            ],
        ),
        (
            "control C( { apply { x = ; } }\nconst int y = ;",
            [
                't.p4:1:12: error: found "{", expected one of: ")", a type',
                't.p4:2:15: error: found ";", expected an expression',
            ],
        ),
        (
            "control C() { apply {\n  if (a { b(); } else { c(); }\n  z(;\n  y = 1;\n} }",
            [
                't.p4:2:9: error: found "{", expected one of: ")", an operator',
                't.p4:3:5: error: found ";", expected one of: ")", "_", an expression',
            ],
        ),
        (
            "control C() { apply { x = 1;\ncontrol D() { apply { y(; } }\n",
            [
                't.p4:2:1: error: found "control", expected "}"',
                't.p4:2:25: error: found ";", expected one of: ")", "_", an expression',
            ],
        ),
        (
            "control C() {\n action a { x = 1; }\n apply { z = ; }\n}\nstruct S { bool; }",
            [
                't.p4:2:11: error: found "{", expected "("',
                't.p4:3:14: error: found ";", expected an expression',
                't.p4:5:16: error: found ";", expected a name',
            ],
        ),
        (
            "parser P() {\n state s { x = ; transition select(a) { 1 x; 2: ; } }\n state 5 { }\n}",
            [
                't.p4:2:16: error: found ";", expected an expression',
                't.p4:2:43: error: found "x", expected one of: "&&&", "..", ":", an operator',
                't.p4:2:49: error: found ";", expected a name',
                't.p4:3:8: error: found "5", expected a name',
            ],
        ),
        (
            "control C() { table t {\n key = { a exact; b : ; }\n size = ;\n x 5;\n} apply { } }",
            [
                't.p4:2:12: error: found "exact", expected one of: ":", an operator',
                't.p4:2:23: error: found ";", expected a name',
                't.p4:3:9: error: found ";", expected an expression',
                't.p4:4:4: error: found "5", expected "="',
            ],
        ),
        (
            "const int a = 8w;\nconst int b = $;\nconst int c = 9x;",
            [
                't.p4:1:15: error: "8w" is not an integer',
                't.p4:2:15: error: unexpected character "$"',
                't.p4:3:15: error: "9x" is not an integer',
            ],
        ),
    ],
)
def test_several_errors_are_reported_at_once_in_order(errors, program, expected):
    assert messages(errors(program)) == expected


def test_an_error_in_a_macro_stands_at_its_use(errors):
    program = "#define BAD a +\n#define ARGS(x) x x\n\nconst int x = BAD;\nconst int y = ARGS(1);"
    assert errors(program) == (
        't.p4:4:18: error: found ";", expected an expression\n'
        "    const int x = BAD;\n"
        "                     ^\n"
        't.p4:5:15: error: found "1", expected one of: ";", an operator\n'
        "    const int y = ARGS(1);\n"
        "                  ^^^^"
    )


def test_an_error_in_an_included_file_stands_there(errors, tmp_path):
    (tmp_path / "bad.p4").write_text("struct S {\n\tbit<8 x;\n}\n")
    report = errors('#include "bad.p4"\n', include_dirs=[tmp_path])
    assert report == (
        f'{tmp_path}/bad.p4:2:8: error: found "x", expected ">"\n    \tbit<8 x;\n    \t      ^'
    )


@pytest.mark.parametrize(
    ("opening", "closing", "program"),
    [
        ("(", ")", "const int x = {};"),
        ("-", "", "const int x = {}1;"),
        ("{", "}", "const int x = {};"),
        ("f(", ")", "const int x = {};"),
        ("a[", "]", "const int x = {};"),
        ("a ? ", " : b", "const int x = {}1;"),
        ("(bit<8>) ", "", "const int x = {}1;"),
        ("(bit<(", ")>) 1", "const int x = {};"),
        ("a < T<bit<(", ")>>.b", "struct T<X> {{ }} const int x = {}1;"),
        ("tuple<", ">", "struct s {{ {} x; }}"),
        ("{", "}", "void f() {{ {} }}"),
        ("if (a) ", "", "void f() {{ {} ; }}"),
        ("if (a) {", "}", "void f() {{ {} }}"),
        ("for (;a;) ", "", "void f() {{ {} ; }}"),
        ("E() e = {", "};", "{}"),
        ("@a[", "]", "{} const int x = 1;"),
    ],
)
def test_deep_nesting_is_an_error_and_never_a_crash(errors, opening, closing, program):
    nested = opening * 10_000 + closing * 10_000
    source = program.replace("{}", nested).replace("{{", "{").replace("}}", "}")
    report = errors(source)
    assert "in a row" in report or "nested deeper" in report or "expected" in report


def test_annotations_may_hold_anything_at_any_depth(declarations):
    """Text that nests too deeply is kept as text and not parsed as an expression."""
    body = "(" * 10_000 + ")" * 10_000
    (annotation,) = declarations(f"@a({body}) const int x = 1;")[0].annotations
    assert annotation.exprs is None
    assert len(annotation.body) == 39_999


def test_how_deep_one_may_go(expr, errors):
    assert expr("(" * 99 + "1" + ")" * 99) == "1"
    report = errors(f"const int x = {'(' * 100}1{')' * 100};")
    assert messages(report) == ["t.p4:1:115: error: nested deeper than 100 levels"]


@pytest.mark.parametrize(
    "program",
    [
        "const int x = 1" + " + 1" * 201 + ";",
        "const int x = a" + ".a" * 201 + ";",
        "void f() { if (a) {} " + "else if (a) {} " * 201 + "}",
    ],
)
def test_endless_chains_are_an_error(errors, program):
    assert "more than 200 operators, members or else-ifs in a row" in errors(program)


def test_after_a_hundred_errors_it_stops(errors):
    report = messages(errors("const int x = ;\n" * 1000))
    assert len(report) == 100
    assert report[-1].startswith("t.p4:100:15: ")


def test_of_a_very_long_line_only_the_place_is_shown(errors):
    padding = " " * 1000
    report = errors(f"const int a = 1;{padding}const int x = $;{padding}const int b = 1;")
    message, line, caret = report.split("\n")
    assert message == 't.p4:1:1031: error: unexpected character "$"'
    assert len(line) == 204
    assert line.strip() == "const int x = $;"
    assert caret.index("^") == line.index("$")
