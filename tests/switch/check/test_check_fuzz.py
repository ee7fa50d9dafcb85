"""The compiler gives legal IR or errors for any program."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.ir.verify import verify
from gradplane.switch.source import CompileError

PROGRAMS = sorted((Path(__file__).parent / "accepted").glob("*.p4"))
TOKEN = re.compile(r'#[^\n]*|//[^\n]*|"[^"]*"|\w+|\s+|.')
WORD = re.compile(r"[A-Za-z_0-9]\w*")
OTHERS = "0 -1 true {} {1,2} ... {#} _ error.NoError m hdr hdr.h sm exact bit<8> (bit<8>)1 {x=1}"


def mutated(text: str, chance: random.Random) -> str:
    """Return the program with one to three of its words replaced, mostly by other words in it."""
    tokens = TOKEN.findall(text)
    words = [i for i, token in enumerate(tokens) if WORD.fullmatch(token)]
    for at in chance.sample(words, chance.choice([1, 1, 2, 3])):
        other = chance.choice(OTHERS.split())
        tokens[at] = other if chance.random() < 0.3 else tokens[chance.choice(words)]
    return "".join(tokens)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_mutated_programs(program: Path) -> None:
    text, chance = program.read_text(), random.Random(program.stem)
    for _ in range(25):
        source = mutated(text, chance)
        try:
            verify(compile_source("mutated.p4", text=source).program)
        except CompileError as error:
            assert error.diagnostics and type(error) is CompileError


@pytest.mark.parametrize(
    ("level", "what"),
    [
        ("struct S{1}<T> {{ S{0}<T> a; S{0}<T> b; }}", "fields in all"),
        ("struct S{1}<T> {{ S{0}<tuple<T, T>> a; }}", "fields in all"),
        ("struct S{1}<T> {{ T a; }} const string c{1} = c{0} ++ c{0};", "characters"),
    ],
)
def test_what_doubles_with_each_level(level: str, what: str) -> None:
    levels = "\n".join(level.format(i, i + 1) for i in range(60))
    text = f'struct S0<T> {{ T a; }} const string c0 = "aaaa";\n{levels}\n'
    with pytest.raises(CompileError, match=what):
        compile_source("doubling.p4", text=text, library=True)
