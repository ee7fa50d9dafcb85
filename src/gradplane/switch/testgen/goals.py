"""The goals of coverage in a program, those behind each branch, and what decides a branch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.ir.walk import blocks, bodies, indices, operands, path, reads
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.source import NOWHERE
from gradplane.switch.testgen.matches import case_goal, select_goal
from gradplane.switch.testgen.parser_facts import Place, Steps, changed, place_of
from gradplane.switch.testgen.recorder import MISS, choices
from gradplane.switch.testgen.runs import Goal

SHIPPED = Path(__file__).parents[1]


@dataclass
class Write:
    """A statement that writes a place. goals: that are reached where it does. sources: what the
    value is computed of; copied: it is this place's."""

    steps: Steps
    goals: frozenset[Goal]
    sources: list[Place]
    copied: Place | None


@dataclass
class Goals:
    """all: what there is to cover. behind: the goals that only a packet that has reached a branch's
    outcome can reach, or that it is likely to. others: the outcomes beside one. loops: conditions
    to go round a loop, or not to."""

    tables: dict[str, MatchTable]
    all: set[Goal] = field(default_factory=set)
    behind: dict[Goal, set[Goal]] = field(default_factory=dict)
    others: dict[Goal, frozenset[Goal]] = field(default_factory=dict)
    loops: set[Goal] = field(default_factory=set)
    _asked: dict[Goal, list[Place]] = field(default_factory=dict)
    _writes: dict[ir.Var, list[Write]] = field(default_factory=lambda: defaultdict(list))
    _passed: dict[Type, ir.Var] = field(default_factory=dict)  # between blocks, by their types
    _params: dict[ir.Var, ir.Var] = field(default_factory=dict)

    def of(self, program: ir.Program) -> Goals:
        """Collect the goals of a program."""
        for _, block in blocks(program.package):
            for p in block.params:
                self._params[p.var] = self._passed.setdefault(p.var.type, p.var)
            if isinstance(block, ir.Parser):
                self._parser(block)
            else:
                self._body(block.body)
        shipped = {f for f in {goal[1].file for goal in self.all} if _is_shipped(f)}
        self.all = {goal for goal in self.all if goal[1].file not in shipped}
        return self

    def _parser(self, parser: ir.Parser) -> None:
        self._body(parser.setup)
        own = {name: self._state(state) for name, state in parser.states.items()}
        for state in parser.states.values():
            if state.select:
                self._decided(self.of_cases(state), state.select)
                for case in state.cases:
                    reached = set().union(*(own[s] for s in reachable(parser, case.next)))
                    self.behind.setdefault(select_goal(state, case), set()).update(reached)

    def _state(self, state: ir.State) -> set[Goal]:
        own = self._body(state.body)
        own |= self.of_cases(state)
        self.all |= own
        return own

    def of_cases(self, state: ir.State) -> set[Goal]:
        """Return the goals that are the cases of a state's select."""
        return {select_goal(state, case) for case in state.cases} if state.select else set()

    def outcomes(self, table: ir.Table) -> list[tuple[str, int]]:
        """Return what a lookup may find, and the number of its action."""
        return list(outcomes(self.tables[table.name]))

    def _body(self, stmts: Iterable[ir.Stmt]) -> set[Goal]:
        found: set[Goal] = set()
        for stmt in stmts:
            found |= self._statement(stmt)
        self.all |= found
        return found

    def _statement(self, stmt: ir.Stmt) -> set[Goal]:
        found: set[Goal] = set()
        if stmt.span is not NOWHERE and stmt.span.line:
            found.add(("line", stmt.span, ""))
        yes: Goal = ("branch", stmt.span, "true")
        no: Goal = ("branch", stmt.span, "false")
        match stmt:
            case ir.If():
                self._decided([yes, no], [stmt.cond])
                found |= self._outcome(yes, stmt.then) | self._outcome(no, stmt.other)
            case ir.SwitchStmt():
                cases = [(case_goal(stmt.span, v), body) for v, body in stmt.cases]
                cases.append((case_goal(stmt.span, []), stmt.default))
                self._decided([goal for goal, _ in cases], [stmt.subject])
                for goal, body in cases:
                    found |= self._outcome(goal, body)
            case ir.Verify():
                self._decided([yes, no], [stmt.cond])
                found |= {yes, no}
            case ir.ApplyTable():
                place, looked_up = stmt.table.span, self.outcomes(stmt.table)
                results: list[Goal] = [("table", place, outcome) for outcome, _ in looked_up]
                self._decided(results, [key.expr for key in stmt.table.keys])
                self._written(stmt, results)
                found |= self._body(stmt.table.key_setup) | self._table(stmt.table)
            case _:
                for one in stmt.body if isinstance(stmt, ir.Loop) else ():
                    if isinstance(one, ir.If):
                        self.loops |= {("branch", one.span, "true"), ("branch", one.span, "false")}
                self._written(stmt, found)
                for body in bodies(stmt):
                    found |= self._body(body)
        return found

    # -- what decides an outcome ------------------------------------------------------------------

    def deciders(self, goal: Goal) -> frozenset[Goal]:
        """Return the goals at which something is written that a goal's condition depends on."""
        found: set[Goal] = set()
        seen: set[Place] = set()
        left = list(self._asked.get(goal, ()))
        while left:
            var, steps = place = left.pop()
            if place in seen:
                continue
            seen.add(place)
            for write in self._writes.get(var, ()):
                shared = min(len(steps), len(write.steps))
                if write.steps[:shared] != steps[:shared]:
                    continue
                found |= write.goals
                if write.copied is not None:
                    source, first = write.copied
                    left.append((source, (*first, *steps[len(write.steps) :])))
                if steps[-1:] != ("valid",):
                    left += write.sources
        return frozenset(found)

    def _decided(self, outcomes: Collection[Goal], asked: Iterable[ir.Expr]) -> None:
        """Note the outcomes that there are at a place, and what says which it is."""
        places = [place for e in asked for place in self._places(e)]
        for goal in outcomes:
            self.others[goal] = frozenset(outcomes) - {goal}
            self._asked[goal] = places

    def _written(self, stmt: ir.Stmt, goals: Iterable[Goal]) -> None:
        copied, asked = None, reads(stmt)
        if isinstance(stmt, ir.Assign) and path(stmt.value) is not None:
            copied, asked = self._place(stmt.value), list(indices(stmt.target))
        sources = [place for e in asked for place in self._places(e)]
        for place in changed(stmt):
            var, steps = self._params.get(place[0], place[0]), place[1]
            self._writes[var].append(Write(steps, frozenset(goals), sources, copied))

    def _places(self, e: ir.Expr) -> Iterator[Place]:
        """Yield the places that an expression reads."""
        inside = operands(e)
        match e:
            case ir.IsValid(base=ir.LValue() as base):
                var, steps = self._place(base)
                inside = list(indices(base))
                yield var, (*steps, "valid")
            case ir.LValue() if not isinstance(e, ir.SliceOf):
                inside = list(indices(e))
                yield self._place(e)
        for one in inside:
            yield from self._places(one)

    def _place(self, e: ir.Expr) -> Place:
        var, steps = place_of(e)
        return self._params.get(var, var), steps

    def _outcome(self, goal: Goal, body: Iterable[ir.Stmt]) -> set[Goal]:
        inside = self._body(body)
        self.behind.setdefault(goal, set()).update(inside)
        return inside | {goal}

    def _table(self, table: ir.Table) -> set[Goal]:
        found: set[Goal] = set()
        for outcome, action in self.outcomes(table):
            goal = ("table", table.span, outcome)
            found |= self._outcome(goal, table.actions[action].action.body)
        return found


def outcomes(table: MatchTable) -> Iterator[tuple[str, int]]:
    """Yield what a lookup may find, and the number of its action."""
    source = table.table
    default = source.default.index
    entries = {table.resolve(entry.action).index for entry in table.entries()}
    for choice in choices(table):
        name = source.actions[choice.action].action.name.rpartition(".")[2]
        if choice.kind == "miss":
            yield MISS, default
        else:
            yield f"{choice.kind} {name}", choice.action
            entries.discard(choice.action)
    for index in sorted(entries):
        yield f"hit {source.actions[index].action.name.rpartition('.')[2]}", index


def reachable(parser: ir.Parser, state: str) -> set[str]:
    """Return the states that a parser may reach from one of them."""
    found, left = set(), [state]
    while left:
        name = left.pop()
        if name not in found and name in parser.states:
            found.add(name)
            left += [case.next for case in parser.states[name].cases]
    return found


def _is_shipped(file: str) -> bool:
    """Return whether a file is an architecture's own."""
    return Path(file).resolve().is_relative_to(SHIPPED)
