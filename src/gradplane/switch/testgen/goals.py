"""What there is to cover in a program, and what lies behind each branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, bodies
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.source import NOWHERE
from gradplane.switch.testgen.matches import case_goal, select_goal
from gradplane.switch.testgen.recorder import MISS, choices
from gradplane.switch.testgen.runs import Goal

SHIPPED = Path(__file__).parents[1]


@dataclass
class Goals:
    """all: what there is to cover. behind: the goals that only a packet that has reached a branch's
    outcome can reach, or that it is likely to."""

    tables: dict[str, MatchTable]
    all: set[Goal] = field(default_factory=set)
    behind: dict[Goal, set[Goal]] = field(default_factory=dict)

    def of(self, program: ir.Program) -> Goals:
        """Collect the goals of a program."""
        for _, block in blocks(program.package):
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
        match stmt:
            case ir.If():
                found |= self._outcome(("branch", stmt.span, "true"), stmt.then)
                found |= self._outcome(("branch", stmt.span, "false"), stmt.other)
            case ir.SwitchStmt():
                for values, body in stmt.cases:
                    found |= self._outcome(case_goal(stmt.span, values), body)
                found |= self._outcome(case_goal(stmt.span, []), stmt.default)
            case ir.Verify():
                found |= {("branch", stmt.span, "true"), ("branch", stmt.span, "false")}
            case ir.ApplyTable():
                found |= self._body(stmt.table.key_setup) | self._table(stmt.table)
            case _:
                for body in bodies(stmt):
                    found |= self._body(body)
        return found

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
