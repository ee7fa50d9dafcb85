"""Graphs of nodes and jumps as nested statements.

A node has statements and a way on: to one node, to one of two by a condition, or by a number. A
node to which several lead is put behind a block, which they leave:

    a: if (c) goto b else goto d          block
    b: x = 1; goto d                ->      if (c)
    d: y = 2                                  x = 1
                                          y = 2

It works on the tree of dominators (N. Ramsey, Beyond Relooper, ICFP 2022), so that each node's
statements appear once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL
from gradplane.switch.ir.walk import bodies, nested, rewrite

Name = Hashable
END = "$end"


@dataclass(slots=True)
class Goto:
    """The way on to one node."""

    to: Name


@dataclass(slots=True)
class Choose:
    """The way on by a condition."""

    cond: ir.Expr
    then: Name
    other: Name


@dataclass(slots=True)
class Select:
    """The way on by a number."""

    subject: ir.Expr
    cases: list[tuple[list[int], Name]]
    default: Name


@dataclass(slots=True)
class Node:
    """Statements, and what follows."""

    body: list[ir.Stmt]
    after: Goto | Choose | Select = field(default_factory=lambda: Goto(END))

    def successors(self) -> list[Name]:
        """Return the nodes that may follow, each once for every way there."""
        match self.after:
            case Goto(to=to):
                return [to]
            case Choose(then=then, other=other):
                return [then] if then == other else [then, other]
            case Select(cases=cases, default=default):
                return list(dict.fromkeys([*(to for _, to in cases), default]))


class Irreducible(Exception):
    """The graph has a loop that is entered in two places."""


def nested_statements(nodes: Mapping[Name, Node], first: Name) -> list[ir.Stmt]:
    """Return a graph that starts with `first` and ends with END as statements.

    Raises Irreducible for a loop with two entries.
    """
    return _Nesting(nodes, first).statements()


class _Nesting:
    def __init__(self, nodes: Mapping[Name, Node], first: Name) -> None:
        self._nodes = {**nodes, END: Node([], Goto(END))}
        self._first = first
        self._order = self._postorder()[::-1]
        self._number = {name: at for at, name in enumerate(self._order)}
        self._before: dict[Name, list[Name]] = {name: [] for name in self._order}
        for name in self._order:
            for to in self._following(name):
                self._before[to].append(name)
        self._parent = self._dominators()
        self._children: dict[Name, list[Name]] = {name: [] for name in self._order}
        for name in self._order:
            if name not in (first, END) and self._merges(name):
                self._children[self._parent[name]].append(name)
        self._labels: dict[Name, ir.Block] = {}
        self._work: list[tuple[Name, list[ir.Stmt]]] = []

    def _following(self, name: Name) -> list[Name]:
        return [] if name == END else self._nodes[name].successors()

    def _postorder(self) -> list[Name]:
        order: list[Name] = []
        seen = {self._first}
        stack: list[tuple[Name, Iterator[Name]]] = [
            (self._first, iter(self._following(self._first)))
        ]
        while stack:
            name, rest = stack[-1]
            for to in rest:
                if to not in seen:
                    seen.add(to)
                    stack.append((to, iter(self._following(to))))
                    break
            else:
                order.append(name)
                stack.pop()
        return order

    def _dominators(self) -> dict[Name, Name]:
        """Return each node's immediate dominator (Cooper, Harvey and Kennedy)."""
        parent: dict[Name, Name] = {self._first: self._first}
        number = self._number

        def common(a: Name, b: Name) -> Name:
            while a != b:
                while number[a] > number[b]:
                    a = parent[a]
                while number[b] > number[a]:
                    b = parent[b]
            return a

        changed = True
        while changed:
            changed = False
            for name in self._order[1:]:
                known = [b for b in self._before[name] if b in parent]
                found = known[0]
                for other in known[1:]:
                    found = common(found, other)
                if parent.get(name) != found:
                    parent[name] = found
                    changed = True
        return parent

    def _dominates(self, a: Name, b: Name) -> bool:
        while self._number[b] > self._number[a]:
            b = self._parent[b]
        return a == b

    def _backward(self, name: Name) -> list[Name]:
        """Return the nodes from which an edge leads back to a node."""
        at = self._number[name]
        return [b for b in self._before[name] if self._number[b] >= at]

    def _merges(self, name: Name) -> bool:
        return len(self._before[name]) - len(self._backward(name)) > 1

    def statements(self) -> list[ir.Stmt]:
        end = ir.Block([])
        self._labels[END] = end
        self._go(self._first, end.body)
        while self._work:
            self._place(*self._work.pop())
        return _tidied([end])

    def _place(self, name: Name, out: list[ir.Stmt]) -> None:
        """Append a node and what it dominates."""
        back = self._backward(name)
        if back:
            if not all(self._dominates(name, b) for b in back):
                raise Irreducible
            again = ir.Block([])
            out.append(ir.Loop([again]))
            self._labels[name] = again
            out = again.body
        for merge in reversed(self._children[name]):
            block = ir.Block([])
            self._labels[merge] = block
            out.append(block)
            self._work.append((merge, out))
            out = block.body
        node = self._nodes[name]
        out += node.body
        match node.after:
            case Goto(to=to):
                self._go(to, out)
            case Choose(cond=cond, then=then, other=other):
                if then == other:
                    self._go(then, out)
                    return
                chosen = ir.If(cond, [], [])
                out.append(chosen)
                self._go(then, chosen.then)
                self._go(other, chosen.other)
            case Select(subject=subject, cases=cases, default=default):
                switch = ir.SwitchStmt(subject, [], [])
                out.append(switch)
                for to, values in _by_target(cases, default).items():
                    body: list[ir.Stmt] = []
                    switch.cases.append((values, body))
                    self._go(to, body)
                self._go(default, switch.default)

    def _go(self, to: Name, out: list[ir.Stmt]) -> None:
        if to in self._labels:
            out.append(ir.Leave(self._labels[to]))
        else:
            self._work.append((to, out))


def _by_target(cases: list[tuple[list[int], Name]], default: Name) -> dict[Name, list[int]]:
    """Return the values by where they lead, those that lead where the default does left out."""
    found: dict[Name, list[int]] = {}
    for values, to in cases:
        if to != default:
            found.setdefault(to, []).extend(values)
    return found


# -- tidying ------------------------------------------------------------------------------------


def _tidied(stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    """Take out what leaves a block at its end anyway, and blocks that nothing leaves."""
    _drop_idle(stmts, frozenset())
    left = {stmt.block for stmt in nested(stmts) if isinstance(stmt, ir.Leave)}
    rewrite(stmts, lambda stmt: _spliced(stmt, left))
    return stmts


def _drop_idle(stmts: list[ir.Stmt], ends: frozenset[ir.Block]) -> None:
    """Drop the leaves at the end of statements that lead where control goes anyway."""
    while stmts:
        last = stmts[-1]
        if not (isinstance(last, ir.Leave) and last.block in ends):
            break
        stmts.pop()
    for at, stmt in enumerate(stmts):
        here = ends if at == len(stmts) - 1 else frozenset()
        if isinstance(stmt, ir.Block):
            here |= {stmt}
        goes_on = isinstance(stmt, ir.If | ir.SwitchStmt | ir.Block)
        for body in bodies(stmt):
            _drop_idle(body, here if goes_on else frozenset())


def _spliced(stmt: ir.Stmt, left: Collection[ir.Block]) -> list[ir.Stmt]:
    """Return the statements in the place of one, whose bodies are tidy."""
    if isinstance(stmt, ir.Block) and stmt not in left:
        return stmt.body
    if isinstance(stmt, ir.If):
        if not stmt.then and not stmt.other:
            return []  # conditions have no effect
        if not stmt.then:
            stmt.cond = _negated(stmt.cond)
            stmt.then, stmt.other = stmt.other, []
    return [stmt]


def _negated(e: ir.Expr) -> ir.Expr:
    return e.operand if isinstance(e, ir.Unary) and e.op == "!" else ir.Unary(BOOL, "!", e)
