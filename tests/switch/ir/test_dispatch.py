"""Tables by class: complete, or refused when they are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class, leaf_classes

ALL: dict[Any, int] = {ir.MatchAny: 1, (ir.MatchValue, ir.MatchMask): 2, ir.MatchRange: 3}


def test_the_kinds_of_a_node() -> None:
    kinds = {"MatchAny", "MatchValue", "MatchMask", "MatchRange", "MatchSet"}
    assert {c.__name__ for c in leaf_classes(ir.Match)} == kinds
    assert ir.LValue not in leaf_classes(ir.Expr) and ir.Var in leaf_classes(ir.Expr)


def test_a_class_stands_for_those_below_it() -> None:
    found = by_class(ir.Match, {ir.MatchSet: 1, ir.Match: 2})
    assert found[ir.MatchSet] == 1 and found[ir.MatchAny] == found[ir.MatchRange] == 2
    assert by_class(ir.Match, ALL, without=(ir.MatchSet,)).keys() == {
        ir.MatchAny, ir.MatchValue, ir.MatchMask, ir.MatchRange
    }  # fmt: skip


@pytest.mark.parametrize(
    ("handlers", "without", "problem"),
    [
        (ALL, (), "MatchSet, a Match, has no handler"),
        (
            {**ALL, ir.MatchSet: 4}, (ir.MatchSet,),
            "MatchSet, a Match, has a handler, and never comes here",
        ),
        ({**ALL, (ir.MatchSet, ir.MatchAny): 4}, (), "MatchAny has two handlers"),
        ({**ALL, ir.MatchSet: 4, ir.Exit: 5}, (), "Exit stands for no kind of Match"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(
    handlers: Mapping[Any, int], without: Collection[type], problem: str
) -> None:
    with pytest.raises(TypeError) as caught:
        by_class(ir.Match, handlers, without)
    assert str(caught.value) == problem
