"""Lower statements: the last layer of the class that lowers code.

expressions <- externs <- calls <- statements: each layer is a class that
extends the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import BOOL, Array, Bits
from gradplane.switch.lower.calls import CallLowering
from gradplane.switch.lower.expressions import has_call
from gradplane.switch.lower.type_erasure import CODE, erase
from gradplane.switch.syntax import ast


class Body(CallLowering):
    # -- statements ----------------------------------------------------------------------------

    def stmts(self, statements: Sequence[ast.Stmt]) -> None:
        for s in statements:
            self.stmt(s)

    def stmt(self, s: ast.Stmt) -> None:
        saved, self._span = self._span, s.span
        _STATEMENTS[type(s)](self, s)
        self._span = saved

    def _empty_stmt(self, s: ast.Empty) -> None:
        pass

    def _block_stmt(self, s: ast.Block) -> None:
        if any(a.name == "in_hash" for a in s.annotations):
            self.p.in_hash.update(dict.fromkeys((inside.span for inside in s.body), s.span))
        with self.scope():
            self.stmts(s.body)

    def _declstmt_stmt(self, s: ast.DeclStmt) -> None:
        self.declare(s.decl)

    def declare(self, decl: ast.Decl) -> None:
        """Lower a local variable or instance. Constants need nothing: their uses are folded."""
        if isinstance(decl, ast.VarDecl):
            assert decl.type is not None
            t = erase(self.env.resolved(decl.type))
            var = self.variable(decl.name, t)
            if decl.init is not None:
                self.emit(ir.Assign(var, self.expr(decl.init)), decl.span)
            elif self.repeats:
                self.emit(ir.Assign(var, ir.Zero(t)), decl.span)
            self.env.bind(decl, var)
        elif isinstance(decl, ast.Instantiation):
            self.p.instantiate(decl, self.env)

    def _assign_stmt(self, s: ast.Assign) -> None:
        target = self.lvalue(s.target)
        if s.op == "=":
            value = self.expr(s.value)
        else:
            current: ir.Expr = target
            if has_call(s.value):
                current = self.spill(target)
            value = self.operation(s.op[:-1], current, self.expr(s.value), s.value)
        self.emit(ir.Assign(target, value))

    def _callstmt_stmt(self, s: ast.CallStmt) -> None:
        self.call(s.call, wanted=False)

    def _if_stmt(self, s: ast.If) -> None:
        cond = self.expr(s.cond)
        if isinstance(cond, ir.Const):
            chosen = s.then if cond.value else s.other
            if chosen is not None:
                self._branch(chosen, self.out)
            return
        then: list[ir.Stmt] = []
        other: list[ir.Stmt] = []
        self._branch(s.then, then)
        if s.other is not None:
            self._branch(s.other, other)
        self.emit(ir.If(cond, then, other))

    def _branch(self, s: ast.Stmt, out: list[ir.Stmt]) -> None:
        with self.into(out), self.scope():
            self.stmt(s)

    def _switchstmt_stmt(self, s: ast.SwitchStmt) -> None:
        codes: dict[str, int] = {}
        if isinstance(s.subject, ast.Member) and s.subject.name == "action_run":
            subject: ir.Expr = self.variable("action_run", CODE)
            assert isinstance(s.subject.base, ast.Call) and isinstance(subject, ir.Var)
            table = self.apply_table(s.subject.base, action_run=subject)
            codes = self.p.action_codes(table)
        else:
            subject = self.expr(s.subject)
        cases: list[tuple[list[int], list[ir.Stmt]]] = []
        default: list[ir.Stmt] = []
        for labels, body in _grouped(s.cases):
            out: list[ir.Stmt] = []
            if body is not None:
                self._branch(body, out)
            values = [self._label(x, codes) for x in labels if not isinstance(x, ast.DefaultKey)]
            if any(isinstance(x, ast.DefaultKey) for x in labels):
                default = out
            else:
                cases.append((values, out))
        if subject.type == BOOL:
            subject = expression_builder.cast(Bits(1), subject)
        self.emit(ir.SwitchStmt(subject, cases, default))

    def _label(self, e: ast.Expr, codes: dict[str, int]) -> int:
        if isinstance(e, ast.Name) and e.name in codes:
            return codes[e.name]
        value = self.expr(e)
        assert isinstance(value, ir.Const)
        return int(value.value)

    # -- loops ---------------------------------------------------------------------------------

    def _loop_stmt(
        self,
        body: ast.Stmt,
        cond: Callable[[], ir.Expr],
        update: Callable[[], None],
        enter: Callable[[], None] = lambda: None,
    ) -> None:
        """Emit while (cond()) { enter(); body; update() }."""
        leave, again = ir.Block([], "break"), ir.Block([], "continue")
        round_: list[ir.Stmt] = []
        with self.repeating(), self.into(round_):
            self.emit(ir.If(cond(), [], [ir.Leave(leave)]))
            enter()
            self._loops.append((leave, again))
            self._branch(body, again.body)
            self._loops.pop()
            self.emit(again)
            update()
        leave.body = [ir.Loop(round_)]
        self.emit(leave)

    def _for_stmt(self, s: ast.For) -> None:
        with self.scope():
            self.stmts(s.init)
            self._loop_stmt(s.body, lambda: self.expr(s.cond), lambda: self.stmts(s.update))

    def _forin_stmt(self, s: ast.ForIn) -> None:
        with self.scope():
            self.declare(s.var)
            var = self.env.find(s.var)
            assert isinstance(var, ir.Var)
            if isinstance(s.collection, ast.Range):
                self._for_range(s, var, s.collection)
            else:
                self._for_each(s, var)

    def _for_range(self, s: ast.ForIn, var: ir.Var, bounds: ast.Range) -> None:
        """Lower a loop over a range; it counts in a wider type, so that a..max ends."""
        low, high = self.exprs(bounds.low, bounds.high)
        assert isinstance(var.type, Bits)
        wide = Bits(var.type.width + 1, var.type.signed)
        count = self.spill(expression_builder.cast(wide, low), "count")
        last = self.spill(expression_builder.cast(wide, high), "last")

        def enter() -> None:
            self.emit(ir.Assign(var, expression_builder.cast(var.type, count)))

        def step() -> None:
            self.emit(
                ir.Assign(
                    count, expression_builder.binary("+", count, expression_builder.number(wide, 1))
                )
            )

        self._loop_stmt(s.body, lambda: expression_builder.binary("<=", count, last), step, enter)

    def _for_each(self, s: ast.ForIn, var: ir.Var) -> None:
        """Unroll a loop over a list or the elements of an array."""
        leave = ir.Block([], "break")
        with self.repeating(), self.into(leave.body):
            for value in self._collection(s.collection):
                self.p.count_inlined(s.span)
                again = ir.Block([], "continue")
                self.emit(ir.Assign(var, value))
                self._loops.append((leave, again))
                self._branch(s.body, again.body)
                self._loops.pop()
                self.emit(again)
        self.emit(leave)

    def _collection(self, e: ast.Expr) -> list[ir.Expr]:
        """Return the elements, with their values before the first iteration."""
        whole = self.expr(e)
        if isinstance(whole.type, Array):
            copy = self.spill(whole, "elements")
            size = whole.type.size
            return [
                expression_builder.element(copy, expression_builder.number(Bits(32), i))
                for i in range(size)
            ]
        assert isinstance(whole, ir.Make), whole
        return [v if isinstance(v, ir.Const) else self.spill(v, "element") for v in whole.fields]

    def _break_stmt(self, s: ast.Break) -> None:
        self.emit(ir.Leave(self._loops[-1][0]))

    def _continue_stmt(self, s: ast.Continue) -> None:
        self.emit(ir.Leave(self._loops[-1][1]))

    # -- leaving -------------------------------------------------------------------------------

    def _return_stmt(self, s: ast.Return) -> None:
        assert self._return is not None
        block, result = self._return
        if s.value is not None and result is not None:
            self.emit(ir.Assign(result, self.expr(s.value)))
        self.emit(ir.Leave(block))

    def _exit_stmt(self, s: ast.Exit) -> None:
        self.exit()


_STATEMENTS: dict[type[ast.Stmt], Callable[..., None]] = by_class(
    ast.Stmt,
    {
        ast.Empty: Body._empty_stmt,
        ast.Block: Body._block_stmt,
        ast.DeclStmt: Body._declstmt_stmt,
        ast.Assign: Body._assign_stmt,
        ast.CallStmt: Body._callstmt_stmt,
        ast.If: Body._if_stmt,
        ast.SwitchStmt: Body._switchstmt_stmt,
        ast.For: Body._for_stmt,
        ast.ForIn: Body._forin_stmt,
        ast.Break: Body._break_stmt,
        ast.Continue: Body._continue_stmt,
        ast.Return: Body._return_stmt,
        ast.Exit: Body._exit_stmt,
    },
)


def _grouped(cases: Sequence[ast.SwitchCase]) -> Iterator[tuple[list[ast.Expr], ast.Block | None]]:
    """Group labels that share a body: one without a body falls through to the next."""
    labels: list[ast.Expr] = []
    for case in cases:
        labels.append(case.label)
        if case.body is not None:
            yield labels, case.body
            labels = []
    if labels:
        yield labels, None
