"""Goals that no packet can reach: a proof for each block by itself, whatever its parameters are.

The statements of a block are followed once, with a term for each number that is known and variables
for all others. Where two ways meet, a number's term is one or the other by the condition. What an
extern, a table or a loop writes is unknown afterwards. So each way that is possible is found
possible, and what is left cannot be reached. Parsers: states to which no way leads from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import z3

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Type
from gradplane.switch.ir.walk import blocks, nested, path, with_actions, writes
from gradplane.switch.testgen.goals import Goals, reachable
from gradplane.switch.testgen.matches import case_goal
from gradplane.switch.testgen.runs import Goal
from gradplane.switch.testgen.symbols import SYMBOLIC, SYMBOLIC_UNARY, Term, as_bits, cast

EFFORT = 200_000  # z3's units of work for one question; a way that it leaves open is possible
Place = tuple[ir.Var, tuple[int | str, ...]]


class Known(dict[Place, Term]):
    """The terms of numbers and of headers' validity, by their places. dead: no packet is here."""

    dead = False

    def copy(self) -> Known:
        made = Known(self)
        made.dead = self.dead
        return made

    def forget(self, places: Iterable[ir.LValue]) -> None:
        """Drop what may change where these are written."""
        for place in places:
            known, steps = _place(place)
            for one in [p for p in self if p[0] is known and p[1][: len(steps)] == steps]:
                del self[one]


def _place(e: ir.LValue) -> Place:
    """Return a place, or the variable that it is in where an index is dynamic."""
    found = path(e)
    while found is None:
        e = e.base  # type: ignore[attr-defined]
        found = path(e)
    return found


class Prover:
    """Finds the goals that are possible in a program."""

    def __init__(self, goals: Goals, covered: set[Goal]) -> None:
        self.goals = goals
        self.possible = set(covered)
        self._serial = count()

    def unreachable(self, program: ir.Program) -> set[Goal]:
        """Return the goals that no packet can reach."""
        for _, block in blocks(program.package):
            if isinstance(block, ir.Parser):
                self._follow(block.setup, Known(), [])
                for name in reachable(block, "start"):
                    state = block.states[name]
                    self._follow([*state.body, *state.on_reject], Known(), [])
                    self.possible |= self.goals.of_cases(state)
            else:
                self._follow(block.body, Known(), [])
        return self.goals.all - self.possible

    def _follow(self, stmts: Sequence[ir.Stmt], known: Known, holds: list[Term]) -> None:
        """Follow statements from a state, which becomes that after them. holds: the conditions of
        the way there."""
        for stmt in stmts:
            if known.dead:
                return
            self.possible.add(("line", stmt.span, ""))
            self._statement(stmt, known, holds)

    def _statement(self, s: ir.Stmt, known: Known, holds: list[Term]) -> None:
        match s:
            case ir.Assign() if isinstance(s.target.type, Bits | Bool) and path(s.target):
                value = self._value(s.value, known)
                known.forget([s.target])
                known[_place(s.target)] = value
            case ir.SetValid() if path(s.target):
                known.forget([s.target])
                var, steps = _place(s.target)
                known[var, (*steps, "valid")] = z3.BoolVal(s.valid)
            case ir.If():
                self._if(s, known, holds)
            case ir.SwitchStmt():
                self._switch(s, known, holds)
            case ir.Block():
                self._follow(s.body, known, holds)
                if any(isinstance(one, ir.Leave) and one.block is s for one in nested(s.body)):
                    known.dead = False
                    known.forget(_written(s.body))
            case ir.Loop():
                known.forget(_written(s.body))
                self._follow(s.body, known, [])
                known.dead = False
                known.forget(_written(s.body))
            case ir.Leave() | ir.Exit():
                known.dead = True
            case ir.ApplyTable():
                self._apply(s, known)
            case ir.Verify():
                self.possible |= {("branch", s.span, "true"), ("branch", s.span, "false")}
            case _:
                known.forget(writes(s))

    def _if(self, s: ir.If, known: Known, holds: list[Term]) -> None:
        condition = self._value(s.cond, known)
        ways = []
        for outcome, term, body in (
            ("true", condition, s.then), ("false", z3.Not(condition), s.other)
        ):  # fmt: skip
            after = known.copy()
            goal: Goal = ("branch", s.span, outcome)
            if self._can(goal, [*holds, term]):
                self.possible.add(goal)
                self._follow(body, after, [*holds, term])
            else:
                after.dead = True
            ways.append(after)
        self._join(known, ways, condition)
        if ways[0].dead != ways[1].dead:
            holds.append(z3.Not(condition) if ways[0].dead else condition)

    def _can(self, goal: Goal, holds: list[Term]) -> bool:
        """Return whether a way is possible; it is where a test has gone it."""
        if goal in self.possible and not self.goals.behind.get(goal, set()) - self.possible:
            return True
        solver = z3.SolverFor("QF_BV")
        solver.set("rlimit", EFFORT)
        solver.add(*holds)
        return bool(solver.check() != z3.unsat)

    def _join(self, known: Known, ways: Sequence[Known], condition: Term) -> None:
        alive = [way for way in ways if not way.dead]
        known.clear()
        known.dead = not alive
        if len(alive) == 1:
            known.update(alive[0])
        elif alive:
            first, second = alive
            for place in first.keys() & second.keys():
                a, b = first[place], second[place]
                known[place] = a if a is b else z3.If(condition, a, b)

    def _switch(self, s: ir.SwitchStmt, known: Known, holds: list[Term]) -> None:
        for values, body in [*s.cases, ([], s.default)]:
            self.possible.add(case_goal(s.span, values))
            self._follow(body, known.copy(), list(holds))
        known.forget(_written([s]))

    def _apply(self, s: ir.ApplyTable, known: Known) -> None:
        self._follow(s.table.key_setup, known, [])
        outcomes = self.goals.outcomes(s.table)
        for outcome, action in outcomes:
            self.possible.add(("table", s.table.span, outcome))
            called = s.table.actions[action].action
            after = known.copy()
            after.forget(called.params)
            self._follow(called.body, after, [])
        known.forget([*writes(s), *(p for _, a in outcomes for p in _written(
            s.table.actions[a].action.body))])  # fmt: skip

    # -- expressions ----------------------------------------------------------------------------

    def _value(self, e: ir.Expr, known: Known) -> Term:
        match e:
            case ir.Const(value=int() as value):
                return z3.BoolVal(value) if isinstance(e.type, Bool) else _number(e.type, value)
            case ir.Zero() if isinstance(e.type, Bits | Bool):
                return z3.BoolVal(False) if isinstance(e.type, Bool) else _number(e.type, 0)
            case ir.Unary():
                return SYMBOLIC_UNARY[e.op](self._value(e.operand, known))
            case ir.Binary() if isinstance(e.left.type, Bits | Bool):
                left, right = self._value(e.left, known), self._value(e.right, known)
                return SYMBOLIC[e.op](e.left.type, e.right.type, left, right)
            case ir.Mux() if isinstance(e.type, Bits | Bool):
                cond, then, other = (self._value(x, known) for x in (e.cond, e.then, e.other))
                return z3.If(cond, then, other)
            case ir.Cast():
                return cast(e.type, e.operand.type, self._value(e.operand, known))
            case ir.SliceOf():
                return z3.Extract(e.hi, e.lo, self._value(e.base, known))
            case ir.IsValid(base=ir.LValue() as base) if path(base):
                var, steps = _place(base)
                return self._known((var, (*steps, "valid")), Bool(), known)
            case ir.LValue() if path(e):
                return self._known(_place(e), e.type, known)
        return self._unknown(e.type)

    def _known(self, place: Place, t: Type, known: Known) -> Term:
        if place not in known:
            known[place] = self._unknown(t)
        return known[place]

    def _unknown(self, t: Type) -> Term:
        name = f"u{next(self._serial)}"
        return z3.BitVec(name, t.width) if isinstance(t, Bits) else z3.Bool(name)


def _number(t: Type, value: int) -> Term:
    return as_bits(t, value)


def _written(stmts: Iterable[ir.Stmt]) -> Iterator[ir.LValue]:
    """Yield all places that statements write, and the actions of tables that they apply."""
    for stmt in with_actions(list(stmts)):
        yield from writes(stmt)


def unreachable(program: ir.Program, goals: Goals, covered: set[Goal]) -> set[Goal]:
    """Return the goals that no packet can reach, of those that tests do not cover."""
    return Prover(goals, covered).unreachable(program)
