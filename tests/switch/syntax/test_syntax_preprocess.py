"""Preprocessing: which text is read, and the place of every token in the user's own text."""

import pytest

from gradplane.switch.source import CompileError, Reporter
from gradplane.switch.syntax import macros, parse_file
from gradplane.switch.syntax.lexer import tokenize
from gradplane.switch.syntax.preprocess import preprocess


def places(text: str, **options) -> list[tuple[str, str, int]]:
    """Return (token, place, width) of a program called t.p4."""
    pieces, reporter = preprocess("t.p4", text=text, **options)
    tokens = tokenize(pieces, reporter)[:-1]
    return [(t.text, str(t.span), t.span.end - t.span.column) for t in tokens]


def read(text: str, **options) -> str:
    return " ".join(token for token, _, _ in places(text, **options))


def test_places_after_comments_continuations_tabs_and_carriage_returns():
    text = "a /* b\n c */ d // e \\\n still e\nf \\\n  g\r\n\th\ri"
    assert places(text) == [
        ("a", "t.p4:1:1", 1),
        ("d", "t.p4:2:7", 1),
        ("f", "t.p4:4:1", 1),
        ("g", "t.p4:5:3", 1),
        ("h", "t.p4:6:2", 1),
        ("i", "t.p4:7:1", 1),
    ]


def test_places_around_macro_uses():
    defines = "#define LONG_ONE a + b\n#define F(x, \\\n y) (x - y)\n"
    text = defines + "\np LONG_ONE q F(1,\n  LONG_ONE) r\ns"
    assert places(text) == [
        ("p", "t.p4:5:1", 1),
        ("a", "t.p4:5:3", 8),
        ("+", "t.p4:5:3", 8),
        ("b", "t.p4:5:3", 8),
        ("q", "t.p4:5:12", 1),
        ("(", "t.p4:5:14", 1),
        ("1", "t.p4:5:14", 1),
        ("-", "t.p4:5:14", 1),
        ("a", "t.p4:5:14", 1),
        ("+", "t.p4:5:14", 1),
        ("b", "t.p4:5:14", 1),
        (")", "t.p4:5:14", 1),
        ("r", "t.p4:6:13", 1),
        ("s", "t.p4:7:1", 1),
    ]


def test_places_in_included_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.p4").write_text('#include "b.p4"\nin_a\n')
    (tmp_path / "sub" / "b.p4").write_text("in_b")
    main = tmp_path / "main.p4"
    main.write_text('before\n#include "sub/a.p4"\nafter\n')
    pieces, reporter = preprocess(main)
    found = [(t.text, str(t.span)) for t in tokenize(pieces, reporter)[:-1]]
    assert found == [
        ("before", f"{main}:1:1"),
        ("in_b", f"{tmp_path}/sub/b.p4:1:1"),
        ("in_a", f"{tmp_path}/sub/a.p4:2:1"),
        ("after", f"{main}:3:1"),
    ]
    assert reporter.lines[f"{tmp_path}/sub/a.p4"] == ['#include "b.p4"', "in_a", ""]


def test_include_search_order(tmp_path):
    """Beside the file (only with quotes), then the user's directories, then the stock ones."""
    for name in ("own", "user"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.p4").write_text(f"{name}_x")
    (tmp_path / "user" / "core.p4").write_text("user_core")
    text = '#include "x.p4"\n#include <x.p4>\n#include <core.p4>\n'
    main = tmp_path / "own" / "main.p4"
    pieces, _ = preprocess(main, [tmp_path / "user"], text=text)
    assert [p.text.strip() for p in pieces if p.text.strip()] == ["own_x", "user_x", "user_core"]


def test_an_include_may_be_a_macro_and_may_stand_under_a_condition():
    text = '#define WHAT <core.p4>\n#include WHAT\n#if 0\n#include "nowhere"\n#endif'
    assert "packet_in" in read(text)


def test_once(tmp_path):
    (tmp_path / "o.p4").write_text("#pragma once\no")
    (tmp_path / "g.p4").write_text("#ifndef G\n#define G\ng\n#endif")
    text = '#include "o.p4"\n#include "g.p4"\n' * 2
    pieces, _ = preprocess(tmp_path / "m.p4", text=text)
    assert "".join(p.text for p in pieces).split() == ["o", "g"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("#define A 5\nA A5 8wA A.A", "5 A5 8wA 5 . 5"),
        ("#define A B\n#define B C\nA", "C"),
        ("#define A A + B\n#define B A\nA", "A + A"),
        ("#define A\na A b", "a b"),
        ("#define A 1\n#undef A\nA", "A"),
        ("#define A 1\n#define A 2\nA", "2"),
        ('#define A 1\n"A" A', '"A" 1'),
        ("#define F(x) x * x\nF(1) F (2) F", "1 * 1 2 * 2 F"),
        ("#define F() 7\nF() + F", "7 + F"),
        ("#define F(x, y) y x\nF((1, 2), a)", "a ( 1 , 2 )"),
        ('#define F(x) x\nF(")")', '")"'),
        ("#define F(n, v) n##w##v\nF(8, 255)", "8w255"),
        ("#define F(n) 8w##n + 8w1\nF(255)", "8w255 + 8w1"),
        ("#define F(x) #x\nF(a + b)", '"a + b"'),
        ("#define F(x, ...) x __VA_ARGS__\nF(1, 2, 3)", "1 2 , 3"),
        ("#define F(x) [x]\n#define G F\nG(1) G", "[ 1 ] F"),
        ("#define F(x) <x>\nF(F(1))", "< < 1 > >"),
        ("#define N +1\n+N", "+ + 1"),
        ("a __LINE__\n__LINE__\n#define L __LINE__\nL", "a 1 2 4"),
        ("__FILE__ __COUNTER__ __COUNTER__", '"t.p4" 0 1'),
        ('# 9 "o.p4" 2\n__LINE__', "9"),
        ("#define T a // b\n#define U /* c */ d\nT U", "a d"),
        ('#define S "a//b"\nS', '"a//b"'),
        ("#pragma anything\n#\n# \na", "a"),
        ("a {#} b", "a {#} b"),
    ],
)
def test_macros(text, result):
    assert read(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("#if 1\na\n#else\nb\n#endif\nc", "a c"),
        ("#if 0\na\n#else\nb\n#endif\nc", "b c"),
        ("#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif", "b"),
        ("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c"),
        ("#ifdef A\na\n#endif\n#ifndef A\nb\n#endif", "b"),
        ("#define A\n#ifdef A\na\n#endif\n#ifndef A\nb\n#endif", "a"),
        ("#define A 3\n#if A == 3 && defined(A) && !defined B\na\n#endif", "a"),
        ("#define F(x) x + 1\n#if F(2) == 3\na\n#endif", "a"),
        ("#if UNKNOWN\na\n#else\nb\n#endif", "b"),
        ("#if 0\n#unknown\n#error no\n#if 1/0\n#elif 1/0\n#endif\n'$\n#endif\na", "a"),
        ("#if 1\na\n#elif 1/0\nb\n#endif", "a"),
        ("#if 1 \\\n + 1\na\n#endif", "a"),
        ("  #  if 1 // comment\na\n #endif /* comment */", "a"),
        ("/*\n#if 0\n*/ a", "a"),
    ],
)
def test_conditions(text, result):
    assert read(text) == result


@pytest.mark.parametrize(
    "defines", [{"N": 4, "D": "1"}, {"N": "4", "D": ""}, ["N=4", "D"], ("D", "N=4")]
)
def test_defines_from_outside(defines):
    assert read("#ifdef D\nN\n#endif", defines=defines) == "4"


def test_a_define_without_a_value_is_one():
    assert read("D E", defines=["D", "E="]) == "1"


def test_a_bad_define_from_outside(errors):
    assert errors("", defines=["8=1"]) == (
        "t.p4:1:1: error: in the given defines: "
        "#define needs a name, then a blank or parameters in parentheses\n    \n    ^"
    )


def test_strings_over_lines_hold_comments_macros_and_conditions():
    """Constraints on a table's entries are written so: `@entry_restriction("...")`."""
    text = """#define LOW 7
x("
  // LOW: don't
  a > LOW; /* http://p4.org */
#if LOW == 7
  b == 0;
#else
  c == 0;
#endif
") // LOW
y("https://a, \\
b") LOW"""
    pieces, reporter = preprocess("t.p4", text=text)
    tokens = tokenize(pieces, reporter)
    strings = [t for t in tokens if t.kind == "text"]
    assert [line.strip() for line in strings[0].value.splitlines() if line.strip()] == [
        "// LOW: don't",
        "a > 7; /* http://p4.org */",
        "b == 0;",
    ]
    assert strings[1].value == "https://a, b"
    assert [(t.text, str(t.span)) for t in tokens if t.kind in ("name", "integer")] == [
        ("x", "t.p4:2:1"),
        ("y", "t.p4:11:1"),
        ("7", "t.p4:12:5"),
    ]
    assert str(strings[0].span) == "t.p4:2:3"


def test_line_markers_within_strings_change_the_place_only():
    """Other preprocessors leave them there; the quotes of a marker do not end the string."""
    text = """x("
  a == 1 && /* text */
# 40 "other.p4" 2
  b == 2 // text
") y"""
    pieces, reporter = preprocess("t.p4", text=text)
    tokens = tokenize(pieces, reporter)
    [string] = [t for t in tokens if t.kind == "text"]
    assert string.value.split("\n") == ["", "  a == 1 && /* text */", "", "  b == 2 // text", ""]
    places = [(t.text, str(t.span)) for t in tokens if t.kind == "name"]
    assert places == [("x", "t.p4:1:1"), ("y", "other.p4:41:4")]
    assert not reporter.diagnostics


def test_lines_within_strings_may_begin_with_a_hash():
    """As for C's preprocessor, only directives that it knows are directives there."""
    text = 'x("\n# heading\n#ifdef X\n#\n#endif\n  # last") y\n#unknown\n'
    pieces, reporter = preprocess("t.p4", text=text)
    tokens = tokenize(pieces, reporter)
    assert [t.value.split("\n") for t in tokens if t.kind == "text"] == [
        ["", "# heading", "", "  # last"]
    ]
    assert [str(t.span) for t in tokens if t.text == "y"] == ["t.p4:6:12"]
    [unknown] = reporter.diagnostics
    assert unknown.message == 'the unknown directive "#unknown" is ignored'
    assert unknown.span.line == 7


def test_line_directives_move_the_places():
    text = 'a\n# 12 "o.p4" 2\nb\n#line 5\nc\n#line 7 "p.p4"\n\nd'
    assert [place for _, place, _ in places(text)] == [
        "t.p4:1:1",
        "o.p4:12:1",
        "o.p4:5:1",
        "p.p4:8:1",
    ]


def test_warnings_do_not_stop():
    _, reporter = preprocess("t.p4", text="#warning watch out\na")
    assert [d.render(reporter.lines) for d in reporter.diagnostics] == [
        "t.p4:1:1: warning: #warning watch out\n    #warning watch out\n    ^^^^^^^^^^^^^^^^^^"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#error no such target", "#error no such target"),
        ("#endif", "#endif without an #if before it"),
        ("#else", "#else without an #if before it"),
        ("#elif 1", "#elif without an #if before it"),
        ("#if 1", "this condition has no #endif"),
        ("#if", "a condition is missing"),
        ("#if 1 +", "this condition cannot be evaluated: unexpected end of the condition"),
        ("#if 8w5", "this condition cannot be evaluated: unexpected 8w5"),
        ("#if 1 2", "this condition cannot be evaluated: unexpected 2"),
        ("#if 09", "this condition cannot be evaluated: unexpected 09"),
        ("#if $", "this condition cannot be evaluated: unexpected $"),
        ("#if (1", 'this condition cannot be evaluated: ")" is missing'),
        ("#if 1 ? 2", 'this condition cannot be evaluated: ":" is missing'),
        ("#if 1 / 0", "this condition cannot be evaluated: division by zero"),
        (
            "#if 1 << 99999999999",
            "this condition cannot be evaluated: "
            "a shift by 99999999999; the amount must be 0 to 63",
        ),
        (
            "#if " + "(" * 31 + "1",
            "this condition cannot be evaluated: it is nested deeper than 30 levels",
        ),
        ("#ifdef", "#ifdef needs a name"),
        ("#ifndef 3", "#ifndef needs a name"),
        ("#undef", "#undef needs a name"),
        ("#define", "#define needs a name, then a blank or parameters in parentheses"),
        ("#define 5 6", "#define needs a name, then a blank or parameters in parentheses"),
        ("#define F(a", "#define needs a name, then a blank or parameters in parentheses"),
        ("#define F(a,,b) a", "#define needs a name, then a blank or parameters in parentheses"),
        ("#include", '#include needs a file name, as "name" or <name>'),
        ("#include core.p4", '#include needs a file name, as "name" or <name>'),
        ("#line x", "#line needs a line number, then possibly a file name in quotes"),
    ],
)
def test_a_wrong_directive(errors, text, message):
    """The message is at the directive, which is underlined."""
    ifs = text.startswith("#if") and message != "this condition has no #endif"
    source = text + ("\n#endif" if ifs else "")
    assert errors(source) == f"t.p4:1:1: error: {message}\n    {text}\n    {'^' * len(text)}"


def test_an_unknown_directive_is_ignored_with_a_warning():
    """As p4c does: published programs comment lines out with a #."""
    pieces, reporter = preprocess("t.p4", text="a\n  #includ <core.p4>\nb")
    assert "".join(piece.text for piece in pieces).split() == ["a", "b"]
    assert [d.render(reporter.lines) for d in reporter.diagnostics] == [
        't.p4:2:3: warning: the unknown directive "#includ" is ignored\n'
        "      #includ <core.p4>\n"
        "      ^^^^^^^^^^^^^^^^^\n"
        "    known: #define, #elif, #else, #endif, #error, #if, #ifdef, #ifndef, #include, "
        "#line, #pragma, #undef, #warning"
    ]


def test_else_twice(errors):
    message = errors("#if 1\n#else\n#else\n#elif 1\n#endif")
    assert message.splitlines()[::3] == [
        "t.p4:3:1: error: #else after #else",
        "t.p4:4:1: error: #elif after #else",
    ]


def test_a_missing_include(errors, tmp_path):
    message = errors('a\n#include "nowhere.p4"\n', include_dirs=[tmp_path]).splitlines()
    assert message[:3] == [
        't.p4:2:1: error: cannot find "nowhere.p4"',
        '    #include "nowhere.p4"',
        "    ^^^^^^^^^^^^^^^^^^^^^",
    ]
    assert message[3].startswith(f"    looked in: ., {tmp_path}, ")
    assert message[3].endswith("/switch/include")
    near = errors("#include <v1mode.p4>\n").splitlines()[3]
    assert near.startswith("    did you mean v1model.p4? looked in: ")


def test_a_file_can_include_a_shipped_one_of_its_own_name(tmp_path):
    """As with p4c: <name> is looked for in the folders of -I and the compiler's."""
    path = tmp_path / "psa.p4"
    path.write_text("#include <psa.p4>\nconst bit<8> MINE = 1;")
    tree, _ = parse_file(path)
    assert len(tree.declarations) > 20


def test_a_file_in_angle_brackets_beside_the_program_needs_a_folder(errors, tmp_path):
    (tmp_path / "mine.p4").write_text("const bit<8> MINE = 1;")
    path = tmp_path / "main.p4"
    path.write_text("#include <mine.p4>")
    assert len(parse_file(path, include_dirs=[tmp_path])[0].declarations) == 1
    with pytest.raises(CompileError) as caught:
        parse_file(path)
    found = str(caught.value).splitlines()
    assert found[0] == f'{path}:1:1: error: cannot find "mine.p4"'
    hint = '    write #include "mine.p4" for the one beside this file; looked in: '
    assert found[3].startswith(hint) and str(tmp_path) not in found[3]


def test_an_included_file_finds_files_beside_the_program(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/a.p4").write_text('#include "b.p4"')
    (tmp_path / "b.p4").write_text("const bit<8> B = 1;")
    path = tmp_path / "main.p4"
    path.write_text('#include "inner/a.p4"')
    assert len(parse_file(path)[0].declarations) == 1


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("__has_include(<core.p4>)", True),
        ("__has_include(<nowhere.p4>)", False),
        ("__has_include ( <beside.p4> ) || 0", False),
        ('__has_include("beside.p4")', True),
        ("__has_include(SHIPPED)", True),
        ("HAS(<core.p4>) && !HAS(<nowhere.p4>)", True),
        ("defined(__has_include) && defined __has_include", True),
    ],
)
def test_whether_there_is_an_include(tmp_path, condition, holds):
    (tmp_path / "beside.p4").write_text("")
    text = "#define SHIPPED <core.p4>\n#define HAS(name) __has_include(name)\n"
    text += f"#ifdef __has_include\n#if {condition}\nyes\n#else\nno\n#endif\n#endif"
    pieces, _ = preprocess(tmp_path / "t.p4", text=text)
    assert "".join(piece.text for piece in pieces).split() == ["yes" if holds else "no"]


def test_whether_there_is_an_include_of_no_name(errors):
    assert '__has_include needs a file name, as ("name") or (<name>)' in errors(
        "#if __has_include(core)\n#endif"
    )


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b"])
def test_an_include_no_file_can_be_called(errors, name):
    assert f'cannot find "{name}"' in errors(f"#include <{name}>")


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_includes_itself(tmp_path, times):
    path = tmp_path / "loop.p4"
    path.write_text('#include "loop.p4"\n' * times)
    with pytest.raises(CompileError) as caught:
        parse_file(path)
    assert str(caught.value) == (
        f"{path}:1:1: error: includes are nested deeper than 64 files\n"
        '    #include "loop.p4"\n'
        "    ^^^^^^^^^^^^^^^^^^\n"
        "    loop.p4 includes itself: begin it with #pragma once"
    )


def test_files_that_include_each_other(tmp_path):
    (tmp_path / "main.p4").write_text('#include "a.p4"\n')
    (tmp_path / "a.p4").write_text('#include "b.p4"\n')
    (tmp_path / "b.p4").write_text(f'\n#include "../{tmp_path.name}/a.p4"\n')
    with pytest.raises(CompileError) as caught:
        parse_file(tmp_path / "main.p4")
    lines = str(caught.value).splitlines()
    assert lines[-1] == "    b.p4 includes itself by way of a.p4: begin it with #pragma once"


def test_a_long_chain_of_includes_is_no_circle(tmp_path):
    for n in range(70):
        (tmp_path / f"{n}.p4").write_text(f'#include "{n + 1}.p4"\n')
    with pytest.raises(CompileError) as caught:
        parse_file(tmp_path / "0.p4")
    assert str(caught.value).endswith('64 files\n    #include "65.p4"\n    ^^^^^^^^^^^^^^^^')


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(CompileError) as caught:
        parse_file(tmp_path / "none.p4")
    name = tmp_path / "none.p4"
    message = f'{name}:1:1: error: cannot read "{name}": No such file or directory'
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#define F(a, b) a\nF(1)", "Macro F requires 2 arguments but was passed 1"),
        ("#define F(a) a\nF(1", 'the arguments of macro "F" lack a ")"'),
    ],
)
def test_a_wrong_macro_use(errors, text, message):
    use = text.split("\n")[1]
    assert errors(text) == f"t.p4:2:1: error: {message}\n    {use}\n    ^"


def test_macros_that_explode_are_stopped(errors, monkeypatch):
    monkeypatch.setattr(macros, "MAX_TOKENS", 5000)
    doubling = "\n".join(f"#define a{i} a{i + 1} a{i + 1}" for i in range(40))
    message = errors(doubling + "\na0\na0")
    assert message == ("t.p4:41:1: error: a macro expands to more than 5000 tokens\n    a0\n    ^^")
    chain = "\n".join(f"#define a{i} a{i + 1}" for i in range(200))
    assert "t.p4:201:1: error: macros are nested deeper than 100 levels" in errors(chain + "\na0")


def test_an_unclosed_comment(errors):
    assert errors("a\nb /* c\n") == (
        "t.p4:2:3: error: this comment is not closed\n    b /* c\n      ^^"
    )


def test_all_errors_are_reported_at_once(errors):
    message = errors("#error a\n#error b\n#include <x>")
    assert [line for line in message.splitlines() if line.startswith("t.p4")] == [
        "t.p4:1:1: error: #error a",
        "t.p4:2:1: error: #error b",
        't.p4:3:1: error: cannot find "x"',
    ]


def test_nothing_is_printed(capfd, errors):
    errors("#if 1 +\n#endif\n#define F(a) a\nF(\n#include <nowhere>")
    assert capfd.readouterr() == ("", "")


def test_a_reporter_can_be_shared():
    reporter = Reporter()
    assert preprocess("t.p4", text="a", reporter=reporter)[1] is reporter
    assert reporter.lines == {"t.p4": ["a"]}


def test_odd_bytes_in_comments_do_not_matter(tmp_path):
    path = tmp_path / "latin.p4"
    path.write_bytes(b"\xef\xbb\xbf// caf\xe9 \xff\nconst int x = 1;")
    assert parse_file(path)[0].declarations[0].name == "x"


def test_a_file_that_is_no_text_is_shown_without_its_control_characters(errors):
    message = errors("const int x = \x1b[31m;")
    assert "\x1b" not in message and "const int x = \ufffd[31m;" in message


def test_a_name_may_go_on_in_the_next_line_of_a_directive(expr):
    """As in C, nothing is left of a backslash and the end of its line."""
    define = "#define VERSION_OF_\\\nTODAY \\\n  5\n#define LATEST \\\n  VERSION_OF_TODAY\n"
    assert expr("LATEST", define) == "5"
