"""Check parsers: states, transitions, select (specification, chapter 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.keyset_coverage import Earlier, known_sets
from gradplane.switch.check.keysets import components, parts, spread
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    Bits,
    Enum,
    Error,
    NewType,
    SerEnum,
    Type,
)
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

FINAL = ("accept", "reject")


class ParserChecker:
    def __init__(self, checker: Checker) -> None:
        self.c = checker

    def check(self, decl: ast.ParserDecl) -> None:
        with self.c.inside("parser"), self.c.scopes.nested():
            self.c.types.declare_variables(decl)
            self.c.decls.block_params(decl)
            params = self.c.scopes.current
            with self.c.scopes.nested():
                self.c.decls.locals(decl.locals, params)
                self._states(decl)

    def _states(self, decl: ast.ParserDecl) -> None:
        states: dict[str, ast.ParserState] = {}
        for s in decl.states:
            if s.name in FINAL:
                self.c.error(s, f"state {s.name} is built in and cannot be declared")
            elif s.name in states:
                self.c.error(s, f"state {s.name} is declared twice", f"at {states[s.name].span}")
            states[s.name] = s
        self._distinct(decl, states)
        if "start" not in states:
            self.c.error(decl, f"parser {decl.name} has no state start")
        for s in decl.states:
            self.c.annotations(s.annotations)
            with self.c.scopes.nested():
                self.c.stmts.body(s.body)
                self._transition(s, states)
        self._unreachable(decl, states)

    def _distinct(self, decl: ast.ParserDecl, states: dict[str, ast.ParserState]) -> None:
        for member in decl.locals:
            if member.name in states:
                place = states[member.name]
                self.c.error(
                    place,
                    f"state {member.name} has the name of another declaration in this parser",
                    f"at {member.name_span or member.span}",
                )

    def _transition(self, s: ast.ParserState, states: dict[str, ast.ParserState]) -> None:
        if isinstance(s.transition, str):
            self._target(s.transition, s, states)
        elif isinstance(s.transition, ast.Select):
            self._select(s.transition, states)

    def _target(self, name: str, place: ast.Node, states: dict[str, ast.ParserState]) -> None:
        if name in states or name in FINAL:
            return
        span = getattr(place, "transition_span", None) or place.span
        hint = did_you_mean(name, [*states, *FINAL])
        self.c.reporter.error(span, f"there is no state {name}", hint)

    def _select(self, select: ast.Select, states: dict[str, ast.ParserState]) -> None:
        given = [self.c.exprs.value(e) for e in select.exprs]
        nested = parts(given[0]) or given if len(given) == 1 else given
        select.one_list = len(given) == 1 and isinstance(select.exprs[0], ast.ListExpr)
        select.exprs = [x for e in select.exprs for x in self._elements(e)]
        places = [e for e in select.exprs for _ in components(e.type or ANY)]
        scalars = [t for one in nested for t in components(one)]
        types = [self._select_type(e, t) for e, t in zip(places, scalars, strict=True)]
        for case in select.cases:
            self._target(case.state, case, states)
            case.keyset = spread(case.keyset, nested)
            self.c.keysets.select(case.keyset, types)
        self._covered(select.cases, types)

    def _covered(self, cases: Sequence[ast.SelectCase], types: Sequence[Type]) -> None:
        """Warn of cases that are never reached because an earlier one includes them."""
        earlier = Earlier()
        for case in cases:
            at = earlier.cover(known_sets(case.keyset, types))
            if at is not None and isinstance(cases[at].keyset, ast.DefaultKey):
                what = "this case is never reached: it follows default"
                self.c.warn(case, "unreachable", what)
                return
            if at is not None:
                what = "this case is never reached: an earlier case matches all its values"
                self.c.warn(case, "unreachable", what, f"the one at {cases[at].span}")

    def _elements(self, e: ast.Expr) -> list[ast.Expr]:
        """Return the elements of a list and of the lists in it; else the expression itself."""
        if not isinstance(e, ast.ListExpr) or not e.elements:
            return [e]
        if isinstance(e.elements[-1], ast.Dots):
            self.c.error(e.elements.pop(), "select cannot be on ...")
        return [x for element in e.elements for x in self._elements(element)]

    def _select_type(self, e: ast.Expr, t: Type) -> Type:
        if t == INTEGER:
            self.c.error(e, "select needs a value of known width", "write 8w1 instead of 1")
            return ANY
        if not isinstance(t, Bits | Enum | SerEnum | Error | NewType) and t not in (BOOL, ANY):
            self.c.error(e, f"select cannot be on {t}")
            return ANY
        return t

    def _unreachable(self, decl: ast.ParserDecl, states: dict[str, ast.ParserState]) -> None:
        reached, todo = set(), ["start"]
        while todo:
            name = todo.pop()
            if name in reached or name not in states:
                continue
            reached.add(name)
            todo += successors(states[name])
        for name, s in states.items():
            if name not in reached and name not in FINAL and "start" in states:
                self.c.warn(s, "unreachable", f"state {name} is never reached")


def successors(s: ast.ParserState) -> list[str]:
    """Return the states that a state's transition names."""
    if isinstance(s.transition, ast.Select):
        return [case.state for case in s.transition.cases]
    return [s.transition] if s.transition is not None else []
