"""Operators, assignments and casts over all pairs of types follow the specification (8.3 to 8.12).

The rules are written down here a second time.
"""

from __future__ import annotations

import itertools

import pytest

from gradplane.switch.compiler import compile_source
from gradplane.switch.source import CompileError

# A value of each type, and the type: of enums and `type`s the underlying one comes second.
Kind = tuple[object, ...]
B8, B16, I8, B1 = ("bit", 8), ("bit", 16), ("int", 8), ("bit", 1)
LITERAL, BOOL, STRING = ("literal",), ("bool",), ("string",)
VALUES: dict[str, Kind] = {
    "m.b8": B8,
    "m.b16": B16,
    "m.b1": B1,
    "m.i8": I8,
    "3": LITERAL,
    "m.flag": BOOL,
    "m.e": ("E",),
    "m.s": ("S", B8),
    "m.i": ("SI", I8),
    "m.n": ("N", B8),
    "m.err": ("error",),
    "hdr.h": ("h_t",),
    "hdr.st": ("h_t[2]",),
    "m.v": ("varbit<8>",),
    "m.t": ("tuple<bit<8>, bool>",),
    '"a"': STRING,
}
PROGRAM = """#include <core.p4>
enum E {{ A }} enum bit<8> S {{ one = 1 }} enum int<8> SI {{ one = 1 }} type bit<8> N;
header h_t {{ bit<8> a; }}
struct H {{ h_t h; h_t[2] st; }}
struct M {{ bit<8> b8; bit<16> b16; bit<1> b1; int<8> i8; bool flag; E e; S s; SI i; N n;
           error err; varbit<8> v; tuple<bit<8>, bool> t; }}
void use<T>(in T x) {{ }}
void change<T>(inout T x, in T y) {{ }}
control c(inout H hdr, inout M m) {{ apply {{
{}
}} }}
"""
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "|+|",
    "|-|",
    "<<",
    ">>",
    "++",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
]


def sized(t: Kind) -> bool:
    return t[0] in ("bit", "int")


def number(t: Kind) -> Kind:
    """Return the type that an enum with a type has in an expression."""
    return t[1] if t[0] in ("S", "SI") else t  # type: ignore[return-value]


def common(a: Kind, b: Kind) -> Kind | None:
    """Return the type both operands get, where they are numbers."""
    a, b = number(a), number(b)
    if a == b and (sized(a) or a == LITERAL):
        return a
    return b if a == LITERAL and sized(b) else a if b == LITERAL and sized(a) else None


def operator_allowed(op: str, a: Kind, b: Kind) -> bool:
    t, left, right = common(a, b), number(a), number(b)
    match op:
        case "&&" | "||":
            return a == b == BOOL
        case "<<" | ">>":
            unsigned = right[0] == "bit" and sized(left)
            return unsigned or right == LITERAL and (sized(left) or left == LITERAL)
        case "++":
            return a == b == STRING or sized(left) and sized(right)
        case "==" | "!=":
            return t is not None or a == b != STRING
        case "&" | "|" | "^" | "|+|" | "|-|":
            return t is not None and sized(t)
        case "/" | "%":
            return t is not None and t[0] != "int"
    return t is not None


def implicit(target: Kind, source: Kind) -> bool:
    if source == LITERAL:  # for a `type` as p4c has it, with a warning
        return sized(target) or target[0] == "N"
    return target == source or source[0] in ("S", "SI") and source[1] == target


def castable(target: Kind, source: Kind) -> bool:
    if target == source:
        return True
    if target[0] in ("S", "SI", "N"):
        return source == LITERAL or number(source) == target[1]
    source = number(source)
    if source[0] == "N":
        return target == source[1]
    if sized(target) and sized(source):
        return target[0] == source[0] or target[1] == source[1]
    return sized(target) and source == LITERAL or {target, source} == {B1, BOOL}


def wrong_lines(lines: list[str]) -> set[str]:
    with pytest.raises(CompileError) as said:
        compile_source("pairs.p4", text=PROGRAM.format("\n".join(lines)), library=True)
    first = PROGRAM.format("?").split("\n").index("?") + 1
    return {lines[d.span.line - first] for d in said.value.diagnostics}


def check(allowed: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradplane.switch.source.MAX_ERRORS", 2 * len(allowed) + 1)
    assert wrong_lines([*allowed]) == {line for line, ok in allowed.items() if not ok}


@pytest.mark.parametrize("op", OPERATORS)
def test_operators(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = itertools.product(VALUES.items(), repeat=2)
    allowed = {f"use({a} {op} {b});": operator_allowed(op, s, t) for (a, s), (b, t) in pairs}
    for unfit in ("use(3 {} 3);", 'use("a" {} "a");'):  # `use` takes no int and no string
        allowed.pop(unfit.format(op), None)
    check(allowed, monkeypatch)


def test_assignments(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {}
    for (a, s), (b, t) in itertools.product(VALUES.items(), repeat=2):
        if s not in (LITERAL, STRING):
            allowed[f"{a} = {b};"] = implicit(s, t)
            allowed[f"change<{_written(s)}>({a}, {b});"] = implicit(s, t)
    check(allowed, monkeypatch)


def test_casts(monkeypatch: pytest.MonkeyPatch) -> None:
    types = [t for t in VALUES.values() if t[0] in ("bit", "int", "bool", "S", "SI", "N", "E")]
    pairs = itertools.product(types, VALUES.items())
    # `type` from a number of another width, which some compilers allow, is not tested
    allowed = {
        f"use(({_written(s)}) ({b}));": castable(s, t)
        for s, (b, t) in pairs
        if s[0] != "N" or castable(s, t)
    }
    check(allowed, monkeypatch)


def _written(t: Kind) -> str:
    return f"{t[0]}<{t[1]}>" if sized(t) else str(t[0])
