"""Goals that no packet can reach.

The statements of a block are followed once, with a term for each number that is known and variables
for all others. Where two ways meet, a number's term is one or the other by the condition. What an
extern, a table or a loop writes is unknown afterwards. So each way that is possible is found
possible, and what is left cannot be reached. Parsers: states and cases to which no way leads.

v1model's controls start with what always holds behind the parser. That no packet is recirculated,
resubmitted or cloned is assumed first; where a call that does it turns out to be possible, the
proof is made anew without. A packet's first pass keeps the assumption, and so do all others then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import z3

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Struct, Type
from gradplane.switch.ir.walk import blocks, nested, path, with_actions
from gradplane.switch.testgen.goals import Goals
from gradplane.switch.testgen.matches import case_goal, select_goal
from gradplane.switch.testgen.parser_facts import (
    Bounds,
    Ends,
    Facts,
    Place,
    Steps,
    changed,
    ends,
    forget,
    headers,
    numbers,
    place_of,
)
from gradplane.switch.testgen.runs import Goal
from gradplane.switch.testgen.symbols import SYMBOLIC, SYMBOLIC_UNARY, Term, as_bits, cast

EFFORT = 500_000  # z3's units of work for one question; a way that it leaves open is possible
AGAIN = ("recirculate", "resubmit", "clone")  # how the names of such calls begin


class Known(dict[Place, Term]):
    """The terms of numbers and of headers' validity, by their places. dead: no packet is here."""

    dead = False

    def copy(self) -> Known:
        made = Known(self)
        made.dead = self.dead
        return made

    def forget(self, places: Iterable[Place]) -> None:
        """Drop what may change where these are written."""
        forget(self, places)


class Prover:
    """Finds the goals that are possible in a program."""

    def __init__(self, goals: Goals, covered: set[Goal]) -> None:
        self.goals = goals
        self.covered = covered
        self.possible = set(covered)
        self._serial = count()
        self._again: set[str] = set()  # calls that let a packet come again

    def unreachable(self, program: ir.Program) -> set[Goal]:
        """Return the goals that no packet can reach."""
        if program.package.type == "V1Switch":
            self._v1model(program, again=False)
            if self._again:
                self.possible = set(self.covered)
                self._v1model(program, again=True)
        else:
            for _, block in blocks(program.package):
                if isinstance(block, ir.Parser):
                    self._parser(block, dict.fromkeys(_invalid(block), (0, 0)))
                else:
                    self._follow(block.body, Known(), [])
        return self.goals.all - self.possible

    def _v1model(self, program: ir.Program, again: bool) -> None:
        """Follow the blocks of a v1model program. again: packets may come again."""
        parser = program.package.args["p"]
        assert isinstance(parser, ir.Parser)
        hdr, meta, standard = (p.var for p in parser.params)
        start = dict.fromkeys(_invalid(parser), (0, 0))
        if not again:
            start |= dict.fromkeys(numbers(meta, meta.type), (0, 0))
            start[standard, (_field(standard, "instance_type"),)] = (0, 0)
        found = self._parser(parser, start)
        error = z3.BitVec(f"u{next(self._serial)}", 32)
        fine = error == program.errors.index("NoError")
        for name in ("vr", "ig", "eg", "ck", "dep"):
            control = program.package.args[name]
            assert isinstance(control, ir.Control)
            params = dict(zip((hdr, meta, standard), (p.var for p in control.params), strict=False))
            known, holds = self._behind(found, params, fine)
            if name in ("vr", "ig", "eg"):
                if standard in params:
                    at = _field(standard, "parser_error")
                    known[params[standard], (at,)] = error
                self._follow(control.body, known, holds)
                self._drop_written(control, params, found, keeps=not again or name != "ig")
            else:
                self._follow(control.body, Known(), [])
            if name == "ig":  # egress gets standard metadata of its own, but for the parser's error
                for facts in (*found.accepted, *found.rejected):
                    forget(facts, [(standard, ())])

    def _parser(self, parser: ir.Parser, start: Facts) -> Ends:
        """Follow a parser; return what holds where it ends."""
        found = ends(parser, start)
        self._follow(parser.setup, Known(), [])
        for name in found.states:
            state = parser.states[name]
            self._follow([*state.body, *state.on_reject], Known(), [])
            if state.select:
                self.possible |= {select_goal(state, c) for c in state.cases if c in found.cases}
        return found

    def _behind(
        self, found: Ends, params: dict[ir.Var, ir.Var], fine: Term
    ) -> tuple[Known, list[Term]]:
        """Return terms for what has bounds behind the parser, and what holds of them."""
        known, sides = Known(), [*found.accepted, *found.rejected]
        for var, steps in {place for facts in sides for place in facts if place[0] in params}:
            limits = {facts.get((var, steps)) for facts in sides}
            only = limits.pop() if len(limits) == 1 else None
            value = only[0] if only and only[0] == only[1] else None
            known[params[var], steps] = self._constant(var.type, steps, value)

        def bounded(facts: Facts) -> Term:
            return z3.And(*(
                _between(known[params[var], steps], bounds)
                for (var, steps), bounds in facts.items() if var in params
            ))  # fmt: skip

        ways = (fine, found.accepted), (z3.Not(fine), found.rejected)
        holds = [z3.Implies(how, z3.Or(*map(bounded, facts))) for how, facts in ways]
        return known, holds

    def _constant(self, t: Type, steps: Steps, value: int | None) -> Term:
        """Return a number, or a variable, of the type that a place has."""
        for step in steps:
            t = Bool() if step == "valid" else t.fields[step].type  # type: ignore[attr-defined]
        if value is None:
            return self._unknown(t)
        return z3.BoolVal(bool(value)) if isinstance(t, Bool) else _number(t, value)

    def _drop_written(
        self, control: ir.Control, params: dict[ir.Var, ir.Var], found: Ends, keeps: bool
    ) -> None:
        """Drop what a control may change; keeps: the next one gets the same packet."""
        back = {own: var for var, own in params.items()}
        written = [
            (back[var], steps) for stmt in with_actions(control.body)
            for var, steps in changed(stmt) if var in back
        ]  # fmt: skip
        for facts in (*found.accepted, *found.rejected):
            forget(facts, written)
            if not keeps:
                facts.clear()

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
                known.forget(changed(s))
                known[place_of(s.target)] = value
            case ir.SetValid() if path(s.target):
                known.forget(changed(s))
                var, steps = place_of(s.target)
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
                self._follow(s.body, known, list(holds))
                known.dead = False
                known.forget(_written(s.body))
            case ir.Leave() | ir.Exit():
                known.dead = True
            case ir.ApplyTable():
                self._apply(s, known, holds)
            case ir.Verify():
                condition = self._value(s.cond, known)
                for outcome, term in (("true", condition), ("false", z3.Not(condition))):
                    goal: Goal = ("branch", s.span, outcome)
                    if self._can(goal, [*holds, term]):
                        self.possible.add(goal)
            case _:
                if isinstance(s, ir.CallExtern) and s.name.startswith(AGAIN):
                    self._again.add(s.name)
                known.forget(changed(s))

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

    def _apply(self, s: ir.ApplyTable, known: Known, holds: list[Term]) -> None:
        self._follow(s.table.key_setup, known, list(holds))
        outcomes = self.goals.outcomes(s.table)
        for outcome, action in outcomes:
            self.possible.add(("table", s.table.span, outcome))
            called = s.table.actions[action].action
            after = known.copy()
            after.forget((param, ()) for param in called.params)
            self._follow(called.body, after, list(holds))
        bodies = [s.table.actions[a].action.body for _, a in outcomes]
        known.forget([*changed(s), *(place for body in bodies for place in _written(body))])

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
                var, steps = place_of(base)
                return self._known((var, (*steps, "valid")), Bool(), known)
            case ir.LValue() if path(e):
                return self._known(place_of(e), e.type, known)
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


def _written(stmts: Iterable[ir.Stmt]) -> Iterator[Place]:
    """Yield all places that statements write, and the actions of tables that they apply."""
    for stmt in with_actions(list(stmts)):
        yield from changed(stmt)


def _invalid(parser: ir.Parser) -> Iterator[Place]:
    """Yield the validity of the headers that are invalid when a parser starts."""
    for param in parser.params:
        if param.direction == "out":
            yield from headers(param.var, param.var.type)


def _field(var: ir.Var, name: str) -> int:
    assert isinstance(var.type, Struct), var.type
    return [f.name for f in var.type.fields].index(name)


def _between(value: Term, bounds: Bounds) -> Term:
    if z3.is_bool(value):
        return z3.Or(*(value == bool(b) for b in range(bounds[0], bounds[1] + 1)))
    return z3.And(z3.UGE(value, bounds[0]), z3.ULE(value, bounds[1]))


def unreachable(program: ir.Program, goals: Goals, covered: set[Goal]) -> set[Goal]:
    """Return the goals that no packet can reach, of those that tests do not cover."""
    return Prover(goals, covered).unreachable(program)
