"""Any text gives a tree or a CompileError: never another exception, never a hang.

Whole programs are cut and mutated token by token, since random text alone rarely gets far.
"""

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch.source import CompileError
from gradplane.switch.syntax import ast, parse_file, parse_text
from gradplane.switch.syntax.lexer import KEYWORDS, OPERATORS

EVERYTHING = Path(__file__).parent / "everything.p4"
TOKENS = re.findall(r"\w+|\s+|[^\w\s]", EVERYTHING.read_text())

WORDS = [*sorted(KEYWORDS), *OPERATORS, "apply", "key", "actions", "entries", "state"]
WORDS += ["type", "list", "priority"]
WORDS += ["T", "x", "8w5", "0", '"s"', '"', "//", "/*", "*/", "\\\n", "$", "\0", "\n"]
DIRECTIVES = ["define ", "define F(x) x##x #x\n", "if ", "elif ", "else\n", "endif\n", "ifdef "]
DIRECTIVES += ["include ", "undef ", "line ", "error\n", "pragma once\n"]
WORDS += [f"\n#{d}" for d in DIRECTIVES] + ["F(", "F", "defined", "__LINE__", "__VA_ARGS__", "##"]
NO_DEADLINE = settings(deadline=None)  # the machine may be busy
WORD = st.sampled_from(WORDS)


def survives(text: str) -> None:
    try:
        program, reporter = parse_text(text)
    except CompileError as error:
        assert error.diagnostics
        assert all(d.level == "error" and d.message for d in error.diagnostics)
        assert str(error)
    else:
        assert isinstance(program, ast.Program)
        assert reporter.errors == []


def test_the_whole_language_is_read():
    program, reporter = parse_file(EVERYTHING)
    kinds = {type(d).__name__ for d in program.declarations}
    assert len(kinds) == 15, kinds
    assert reporter.diagnostics == []
    assert program.declarations[-1].name == "main"


@settings(NO_DEADLINE)
@given(st.text(max_size=200))
def test_any_text(text):
    survives(text)


@settings(NO_DEADLINE)
@given(st.lists(st.tuples(WORD, st.sampled_from(["", " "])), max_size=80))
def test_any_words(words):
    survives("".join(word + gap for word, gap in words))


@settings(NO_DEADLINE)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "t.p4"
    path.write_bytes(data)
    try:
        parse_file(path)
    except CompileError as error:
        assert error.diagnostics


MUTATION = st.tuples(
    st.integers(0, len(TOKENS) - 1), st.sampled_from(["drop", "replace", "insert", "repeat"]), WORD
)


def mutate(tokens: list[str], at: int, how: str, word: str) -> None:
    if how == "drop":
        del tokens[at]
    elif how == "replace":
        tokens[at] = word
    elif how == "insert":
        tokens.insert(at, word)
    else:
        tokens[at:at] = tokens[max(0, at - 20) : at]


@settings(NO_DEADLINE, max_examples=100)
@given(st.lists(MUTATION, min_size=1, max_size=5))
def test_programs_with_mistakes(mutations):
    tokens = list(TOKENS)
    for at, how, word in mutations:
        mutate(tokens, min(at, len(tokens) - 1), how, word)
    survives("".join(tokens))


@settings(NO_DEADLINE)
@given(st.integers(0, len(TOKENS)), st.integers(0, 300))
def test_pieces_of_programs(start, length):
    survives("".join(TOKENS[start : start + length]))


@settings(NO_DEADLINE, max_examples=30)
@given(st.integers(0, len(TOKENS)))
def test_programs_that_end_early(end):
    survives("".join(TOKENS[:end]))


@settings(NO_DEADLINE)
@given(
    st.sampled_from(["parser", "control", "struct", "header", "extern", "action", "table"]),
    st.lists(WORD, max_size=30),
)
def test_bodies_of_any_words(keyword, words):
    body = " ".join(words)
    survives(f"control C() {{ apply {{ }} }} {keyword} X() {{ {body} }} const int x = 1;")
