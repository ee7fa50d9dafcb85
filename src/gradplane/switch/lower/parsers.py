"""Lower parsers to graphs of states; a sub-parser's states are added to its caller's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Struct
from gradplane.switch.lower.instance_scope import Env
from gradplane.switch.lower.statements import Body
from gradplane.switch.lower.table_lowering import match_of
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

if TYPE_CHECKING:
    from gradplane.switch.lower.instances import Instances


class ParserLowering:
    """Collects the states of one top-level parser."""

    def __init__(self, lowering: Instances, body: Body) -> None:
        self.p = lowering
        self.body = body
        self.states: dict[str, ir.State] = {}
        self._pieces: Counter[str] = Counter()  # how often a state was split at a sub-parser
        self._copy_outs: list[list[ir.Stmt]] = []  # of the enclosing sub-parsers, for reject

    def run(self, decl: ast.ParserDecl, env: Env) -> dict[str, ir.State]:
        with self.body.repeating():
            self._graph(decl, env, prefix="", accept="accept")
        return self.states

    def _graph(self, decl: ast.ParserDecl, env: Env, prefix: str, accept: str) -> None:
        """Add a parser's states under a prefix; `accept` is the target of its accept."""
        for s in decl.states:
            with self.body.scope(env.inner()):
                self._state(s, prefix, accept)

    def _state(self, s: ast.ParserState, prefix: str, accept: str) -> None:
        current = self._new(prefix + s.name, s)
        with self.body.scope():
            current = self._statements(s.body, current, prefix)
            self._transition(s, current, prefix, accept)

    def _new(self, name: str, s: ast.Node) -> ir.State:
        state = ir.State(name, [], [], [], s.span)
        for copies in reversed(self._copy_outs):
            state.on_reject += copies
        self.states[name] = state
        return state

    def _fresh_name(self, name: str) -> str:
        self._pieces[name] += 1
        return f"{name}~{self._pieces[name]}"

    def _statements(
        self, statements: Sequence[ast.Stmt], current: ir.State, prefix: str
    ) -> ir.State:
        """Lower statements into `current`; a call of a sub-parser ends it and starts another."""
        for s in statements:
            match s:
                case ast.CallStmt(call=ast.Call(info=info)) if info.kind == "block":
                    current = self._sub_parser(s, current)
                case ast.Block(body=body) if _applies_parser(body):
                    with self.body.scope():
                        current = self._statements(body, current, prefix)
                case ast.If() if _applies_parser([s]):
                    current = self._branches(s, current, prefix)
                case _:
                    with self.body.into(current.body):
                        self.body.stmt(s)
        return current

    def _branches(self, s: ast.If, current: ir.State, prefix: str) -> ir.State:
        """Lower an if that contains a sub-parser: a state for each branch, and one to join them."""
        with self.body.into(current.body):
            current.select = [self.body.expr(s.cond)]
        after = self._new(self._fresh_name(current.name), s)
        for match, branch in (
            (ir.MatchValue(expression_builder.TRUE), s.then),
            (ir.MatchAny(), s.other),
        ):
            first = last = self._new(self._fresh_name(current.name), s)
            current.cases.append(ir.SelectCase([match], first.name, s.span))
            if branch is not None:
                with self.body.scope():
                    last = self._statements([branch], first, prefix)
            last.cases = [ir.SelectCase([ir.MatchAny()], after.name, s.span)]
        return after

    def _sub_parser(self, s: ast.CallStmt, current: ir.State) -> ir.State:
        info = s.call.info
        self.p.count_inlined(s.span)
        instance = self.body.block_instance(info)
        decl = instance.decl
        assert isinstance(decl, ast.ParserDecl)
        with self.body.into(current.body):
            env, copies = self.body.enter_parser(info, instance)
            with self.body.scope(env):
                self.body.initialise(decl.locals, again=True)
        after = self._new(self._fresh_name(current.name), s)
        entry = f"{after.name}.{decl.name}."
        current.cases = [ir.SelectCase([ir.MatchAny()], f"{entry}start", s.span)]
        self._copy_outs.append(copies)
        self._graph(decl, env, entry, after.name)
        self._copy_outs.pop()
        after.body += copies
        return after

    def _transition(self, s: ast.ParserState, current: ir.State, prefix: str, accept: str) -> None:
        def target(name: str) -> str:
            return accept if name == "accept" else name if name == "reject" else prefix + name

        if not isinstance(s.transition, ast.Select):
            span = s.transition_span or s.span
            name = s.transition if s.transition is not None else "reject"
            current.cases = [ir.SelectCase([ir.MatchAny()], target(name), span)]
            return
        with self.body.into(current.body):
            current.select = self._selected(s.transition.exprs)
            current.cases = [
                ir.SelectCase(self._matches(c.keyset), target(c.state), c.span)
                for c in s.transition.cases
            ]

    def _selected(self, exprs: Sequence[ast.Expr]) -> list[ir.Expr]:
        """Return the values that are matched; structs and tuples are matched part by part."""
        return [part for value in self.body.exprs(*exprs) for part in self._parts(value)]

    def _parts(self, value: ir.Expr) -> list[ir.Expr]:
        if not isinstance(value.type, Struct):
            return [value]
        whole = value if isinstance(value, ir.Make | ir.LValue) else self.body.spill(value)
        fields = [expression_builder.field(whole, i) for i in range(len(value.type.fields))]
        return [part for field in fields for part in self._parts(field)]

    def _matches(self, keyset: ast.Expr) -> list[ir.Match]:
        if isinstance(keyset, ast.TupleKey | ast.ListExpr):
            return [self._match(e) for e in keyset.elements]
        return [self._match(keyset)]

    def _match(self, keyset: ast.Expr) -> ir.Match:
        if isinstance(keyset, ast.Name) and isinstance(keyset.decl, ast.ValueSetDecl):
            found = self.body.env.find(keyset.decl)
            assert isinstance(found, ir.ValueSet)
            return ir.MatchSet(found)
        return match_of(self.body, keyset)


def _applies_parser(statements: Sequence[ast.Stmt]) -> bool:
    return any(
        isinstance(n, ast.Call) and n.info is not None and n.info.kind == "block"
        for n in walk(statements)
    )
