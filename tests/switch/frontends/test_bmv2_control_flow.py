"""Nested statements take the same way as the graph that they are made of."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.frontends.bmv2.control_flow import (
    END,
    Choose,
    Goto,
    Irreducible,
    Name,
    Node,
    Select,
    nested_statements,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits

STEPS = 40  # after which a walk ends, as graphs may have loops


class Enough(Exception):
    pass


class Walk:
    """Visits nodes; `numbers` decide at each branch."""

    def __init__(self, numbers: list[int]) -> None:
        self.seen: list[int] = []
        self._numbers = iter(numbers)

    def visit(self, number: int) -> None:
        self.seen.append(number)
        if len(self.seen) >= STEPS:
            raise Enough

    def number(self) -> int:
        return next(self._numbers, 0)

    # -- the graph ------------------------------------------------------------------------------

    def graph(self, nodes: dict[Name, Node], first: Name) -> list[int]:
        here = first
        try:
            while here != END:
                assert isinstance(here, int)
                self.visit(here)
                here = self._following(nodes[here])
        except Enough:
            pass
        return self.seen

    def _following(self, node: Node) -> Name:
        match node.after:
            case Goto(to=to):
                return to
            case Choose(then=then, other=other):
                if then == other:
                    return then
                return then if self.number() % 2 else other
            case Select(cases=cases, default=default):
                number = self.number() % 4
                return next((to for values, to in cases if number in values), default)

    # -- the statements -------------------------------------------------------------------------

    def statements(self, body: list[ir.Stmt]) -> list[int]:
        with contextlib.suppress(Enough):
            assert self._run(body) is None
        return self.seen

    def _run(self, body: list[ir.Stmt]) -> ir.Block | None:
        for stmt in body:
            left = self._one(stmt)
            if left is not None:
                return left
        return None

    def _one(self, stmt: ir.Stmt) -> ir.Block | None:
        match stmt:
            case ir.Advance(bits=ir.Const(value=number)):
                self.visit(int(number))
            case ir.Leave(block=block):
                return block
            case ir.Block(body=body):
                left = self._run(body)
                return None if left is stmt else left
            case ir.Loop(body=body):
                while True:
                    left = self._run(body)
                    if left is not None:
                        return left
            case ir.If(cond=cond, then=then, other=other):
                return self._run(then if self._true(cond) else other)
            case ir.SwitchStmt(cases=cases, default=default):
                number = self.number() % 4
                return self._run(next((b for values, b in cases if number in values), default))
        return None

    def _true(self, cond: ir.Expr) -> bool:
        if isinstance(cond, ir.Unary):
            return not self._true(cond.operand)
        return bool(self.number() % 2)


def node(number: int, after: Goto | Choose | Select) -> Node:
    return Node([ir.Advance(ir.Const(Bits(32), number))], after)


def coin() -> ir.Var:
    return ir.Var(BOOL, "coin", 0)


@st.composite
def graphs(draw: st.DrawFn, loops: bool) -> dict[Name, Node]:
    """Graphs of up to 8 nodes; without loops, all edges lead to greater numbers."""
    count = draw(st.integers(1, 8))

    def target(at: int) -> st.SearchStrategy[Name]:
        least = 0 if loops else at + 1
        return st.sampled_from([*range(least, count), END])

    nodes: dict[Name, Node] = {}
    for at in range(count):
        one, other, third = (draw(target(at)) for _ in range(3))
        match draw(st.integers(0, 2)):
            case 0:
                nodes[at] = node(at, Goto(one))
            case 1:
                nodes[at] = node(at, Choose(coin(), one, other))
            case _:
                subject = ir.Var(Bits(32), "number", 1)
                nodes[at] = node(at, Select(subject, [([0], one), ([1, 2], other)], third))
    return nodes


numbers = st.lists(st.integers(0, 3), min_size=STEPS, max_size=STEPS)


def compare(graph: dict[Name, Node], draws: list[list[int]]) -> None:
    body = nested_statements(graph, 0)
    for drawn in draws:
        assert Walk(drawn).statements(body) == Walk(drawn).graph(graph, 0)


@given(graphs(loops=False), st.lists(numbers, min_size=1, max_size=4))
def test_graphs_without_loops(graph: dict[Name, Node], draws: list[list[int]]) -> None:
    compare(graph, draws)


@given(graphs(loops=True), st.lists(numbers, min_size=1, max_size=4))
def test_graphs_with_loops(graph: dict[Name, Node], draws: list[list[int]]) -> None:
    with contextlib.suppress(Irreducible):  # a loop with two entries: compilers make none
        compare(graph, draws)


def test_a_loop_with_two_entries_is_refused() -> None:
    graph: dict[Name, Node] = {
        0: node(0, Choose(coin(), 1, 2)),
        1: node(1, Choose(coin(), 2, END)),
        2: node(2, Choose(coin(), 1, END)),
    }
    with pytest.raises(Irreducible):
        nested_statements(graph, 0)


def test_a_long_chain_of_conditions_does_not_nest() -> None:
    """Conditions one after another, as a program with many tables has them."""
    count = 3000
    nodes: dict[Name, Node] = {}
    for at in range(0, 2 * count, 2):
        after = at + 2 if at + 2 < 2 * count else END
        nodes[at] = node(at, Choose(coin(), at + 1, after))
        nodes[at + 1] = node(at + 1, Goto(after))
    body = nested_statements(nodes, 0)
    assert len(body) == 2 * count and all(isinstance(s, ir.If) for s in body[1::2])
