"""Tokens, and errors about text that is none. (Values of literals: test_syntax_expressions.)"""

import pytest

from gradplane.switch.source import Reporter
from gradplane.switch.syntax.lexer import KEYWORDS, OPERATORS, tokenize
from gradplane.switch.syntax.preprocess import Piece


def lex(text: str):
    reporter = Reporter()
    return tokenize([Piece(text, "t.p4", 1, 1)], reporter), reporter


@pytest.mark.parametrize("text", [op for op in OPERATORS] + sorted(KEYWORDS))
def test_each_operator_and_keyword_is_one_token(text):
    tokens, reporter = lex(f"a {text} b{text}")
    expected = ["name", text, "name", text] if text in OPERATORS else ["name", text, "name"]
    assert [t.kind for t in tokens[:-1]] == expected
    assert reporter.diagnostics == []


def test_names_that_begin_like_keywords():
    tokens, _ = lex("apply1 _x bits int_ in2 Control")
    assert [t.kind for t in tokens] == ["name"] * 6 + ["end"]


def test_two_greater_signs_stay_two_and_know_whether_they_touch():
    tokens, _ = lex("a >> b > > c >= d >>= e")
    assert [(t.kind, t.joined) for t in tokens if ">" in t.kind] == [
        (">", True),
        (">", False),
        (">", False),
        (">", False),
        (">=", False),
        (">>=", False),
    ]


def test_the_end_stands_after_the_last_token():
    tokens, _ = lex("a\n bc \n\n")
    assert (tokens[-1].kind, str(tokens[-1].span)) == ("end", "t.p4:2:4")
    assert str(lex("")[0][-1].span) == ":1:1"


def test_a_string_may_go_over_lines():
    tokens, reporter = lex('f("one\ntwo" "x") g')
    assert [t.value for t in tokens if t.kind == "text"] == ["one\ntwo", "x"]
    assert [str(t.span) for t in tokens[-2:]] == ["t.p4:2:11", "t.p4:2:12"]
    assert reporter.diagnostics == []


def test_any_character_becomes_a_token():
    tokens, reporter = lex("$ a\u00e9 \x00 \u00a0 ` \\ #")
    assert [t.kind for t in tokens] == ["bad", "name", *["bad"] * 6, "end"]
    assert reporter.diagnostics == []


@pytest.mark.parametrize(
    "text",
    ["8w", "8w_", "0x", "0b2", "0o8", "0b", "12abc", "8x5", "0_x", "8w0xg", "1" * 4001],
)
def test_what_is_no_integer(errors, text):
    shown = text if len(text) <= 40 else "1" * 37 + "..."
    report = errors(f"const int x = {text};").splitlines()
    assert report[0] == f't.p4:1:15: error: "{shown}" is not an integer'
    assert report[3] == (
        "    like 255, 0xFF, 0b1010, 1_000, 8w255 (8 bits) or 8s0x7F (8 bits, signed)"
    )
    assert len(report) == 4


@pytest.mark.parametrize("text", ['"abc', '"', '"abc\\"', '"a\\\\\\"'])
def test_an_unclosed_string(errors, text):
    """Only this is reported, not the parser's errors in the rest."""
    assert errors(f"const string x = {text}\nconst int y = 1;") == (
        't.p4:1:18: error: this string has no closing " on its line\n'
        f"    const string x = {text}\n"
        f"                     {'^' * len(text)}"
    )


@pytest.mark.parametrize(
    ("character", "shown"), [("$", '"$"'), ("\x01", "U+0001"), ("\u00a0", "U+00A0"), ("#", '"#"')]
)
def test_a_character_p4_does_not_use(errors, character, shown):
    report = errors(f"const int x = {character} 1;").splitlines()
    assert report[0] == f"t.p4:1:15: error: unexpected character {shown}"
