"""Expansions as the C standard defines them: arguments, painted names, # and ##."""

from __future__ import annotations

import pytest

from gradplane.switch.syntax.macros import Macros


@pytest.mark.parametrize(
    ("defines", "use", "expansion"),
    [
        (["A B + A", "B A * 2"], "A", "A * 2 + A"),
        (["F(x) x + F(x)"], "F(F(1))", "1 + F(1) + F(1 + F(1))"),
        (["F(x) x C", "C y ## 2"], "F(C)", "y2 y2"),
        (["CALL F (", "F(x) [x]"], "CALL 1 )", "[1]"),
        (["NAME F", "F(x) [x]"], "NAME(1) NAME", "[1] F"),
        (["F() C", "C(x) x"], "F()(7)", "7"),
        (["E F + G", "F(x) x", "G (y)"], "E", "F + (y)"),
        (["J(a, b) a ## b", "X 9"], "J(X, X) J(, q)", "XX q"),
        (["S(a) # a", "X 9"], "S( X  + 1 )", '"X + 1"'),
        (["V(a, ...) a: __VA_ARGS__"], "V(1, 2, (3, 4))", "1: 2, (3, 4)"),
        (["T(N, R, V) t##N { R: V(N) }", "V3(n) n 1 n"], "T(x, r, V3)", "tx { r: x 1 x }"),
        (["LINE __LINE__"], "LINE", "42"),
    ],
)
def test_expansions(defines: list[str], use: str, expansion: str) -> None:
    macros = Macros()
    for define in defines:
        macros.define(define)
    assert "".join(macros.expand(use, 42).split()) == "".join(expansion.split())
