"""Lowering of expressions and statements into a list of IR statements.

A Body is one top-level parser or control while it is being lowered. Everything it calls is inlined
into it. Arguments are bound by reference where nothing can tell the difference, otherwise copied
in and out in order (specification, section 6.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradplane.switch.check.calls import CallInfo
from gradplane.switch.check.expressions import EnumValue
from gradplane.switch.check.kinds import substitute
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    BOOL,
    STRING,
    Bits,
    Fields,
    Stack,
    Struct,
    Type,
    Void,
)
from gradplane.switch.lower import build
from gradplane.switch.lower.env import PACKET, ActionInstance, BlockInstance, Env
from gradplane.switch.lower.erase import CODE, erase, type_name
from gradplane.switch.lower.paths import independent, overlap, path
from gradplane.switch.source import NOWHERE, Span
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.lower.program import Lowering


class Body:
    """`out` is where statements go; `locals` grows with every variable made."""

    def __init__(self, lowering: Lowering) -> None:
        self.p = lowering
        self.out: list[ir.Stmt] = []
        self.locals: list[ir.Var] = []
        self.env = Env(lowering.top)
        self.repeats = False  # may this place run more than once a packet?
        self._return: tuple[ir.Block, ir.Var | None] | None = None
        self._loops: list[tuple[ir.Block, ir.Block]] = []  # (for break, for continue)
        self._copy_outs: list[list[ir.Stmt]] = []  # of the calls around, for exit
        self._span = NOWHERE

    # -- helpers -------------------------------------------------------------------------------

    def emit(self, s: ir.Stmt, span: Span | None = None) -> None:
        s.span = span or self._span
        self.out.append(s)

    @contextmanager
    def into(self, out: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
        saved, self.out = self.out, out
        try:
            yield out
        finally:
            self.out = saved

    @contextmanager
    def scope(self, env: Env | None = None) -> Iterator[Env]:
        saved, self.env = self.env, env or self.env.inner()
        try:
            yield self.env
        finally:
            self.env = saved

    @contextmanager
    def repeating(self) -> Iterator[None]:
        saved, self.repeats = self.repeats, True
        try:
            yield
        finally:
            self.repeats = saved

    def variable(self, name: str, t: Type) -> ir.Var:
        var = self.p.variable(name, t)
        self.locals.append(var)
        return var

    def spill(self, e: ir.Expr, name: str = "tmp") -> ir.Var:
        """A new variable holding the value `e` has now."""
        var = self.variable(name, e.type)
        self.emit(ir.Assign(var, e))
        return var

    def type_of(self, e: ast.Expr) -> Type:
        assert e.type is not None, e
        return erase(substitute(e.type, self.env.types))

    # -- expressions ---------------------------------------------------------------------------

    def expr(self, e: ast.Expr) -> ir.Expr:
        """A pure expression with the value of `e`; its calls are emitted first."""
        if e.const is not None:
            return self._constant(e)
        value: ir.Expr = getattr(self, f"_{type(e).__name__.lower()}")(e)
        return value

    def exprs(self, *es: ast.Expr) -> list[ir.Expr]:
        """Operands, evaluated from left to right: one that a later call could change is saved."""
        out: list[ir.Expr] = []
        for i, e in enumerate(es):
            value = self.expr(e)
            if not isinstance(value, ir.Const) and any(map(has_call, es[i + 1 :])):
                value = self.spill(value)
            out.append(value)
        return out

    def _constant(self, e: ast.Expr) -> ir.Expr:
        t = self.type_of(e)
        if isinstance(e.const, EnumValue):
            return ir.Const(CODE, self.p.member_code(e.const))
        if isinstance(e.const, str):
            return ir.Const(STRING, e.const)
        if t == CODE and not isinstance(e.const, bool):  # an int literal that met no width
            return ir.Const(Bits(max(32, e.const.bit_length())), e.const)
        return ir.Const(t, e.const)

    def _name(self, e: ast.Name) -> ir.Expr:
        bound = self.env.find(e.decl)
        if bound is None and isinstance(e.decl, ast.ConstDecl):
            return self.expr(e.decl.value)
        assert isinstance(bound, ir.Expr), (e.name, bound)
        return bound

    def _member(self, e: ast.Member) -> ir.Expr:
        if isinstance(e.base, ast.Call) and e.base.info.kind == "table":
            return self._apply_result(e.base, e.name)
        base = self.expr(e.base)
        if isinstance(base.type, Stack):
            return self._stack_member(e, base)
        assert isinstance(base.type, Fields)
        index = base.type.index(e.name)
        assert index is not None
        return build.field(base, index)

    def _stack_member(self, e: ast.Member, base: ir.Expr) -> ir.Expr:
        assert isinstance(base, ir.LValue) and isinstance(base.type, Stack)
        match e.name:
            case "next":
                return ir.NextOf(base.type.element, base)
            case "last":
                return ir.LastOf(base.type.element, base)
        return ir.LastIndex(Bits(32), base)

    def _apply_result(self, call: ast.Call, name: str) -> ir.Expr:
        hit = self.variable("hit", BOOL)
        self._apply_table(call, hit=hit)
        return build.unary("!", hit) if name == "miss" else hit

    def _index(self, e: ast.Index) -> ir.Expr:
        base, index = self.exprs(e.base, e.index)
        if isinstance(base.type, Struct):  # a tuple
            assert isinstance(index, ir.Const) and isinstance(index.value, int)
            return build.field(base, index.value)
        return build.element(base, index)

    def _slice(self, e: ast.Slice) -> ir.Expr:
        base = self.expr(e.base)
        lo = e.lo.const
        hi = e.hi.const if e.hi is not None else lo + e.width.const - 1  # type: ignore[union-attr]
        return build.slice_of(base, hi, lo)

    def _unary(self, e: ast.Unary) -> ir.Expr:
        return build.unary(e.op, self.expr(e.operand))

    def _binary(self, e: ast.Binary) -> ir.Expr:
        if e.op in ("&&", "||") and has_call(e.right):
            return self._short_circuit(e)
        left, right = self.exprs(e.left, e.right)
        if e.op in ("==", "!="):
            same = build.equal(left, right)
            return same if e.op == "==" else build.unary("!", same)
        return build.binary(e.op, left, right)

    def _short_circuit(self, e: ast.Binary) -> ir.Expr:
        result = self.spill(self.expr(e.left))
        with self.into([]) as rest:
            self.emit(ir.Assign(result, self.expr(e.right)))
        then, other = (rest, []) if e.op == "&&" else ([], rest)
        self.emit(ir.If(result, then, other))
        return result

    def _ternary(self, e: ast.Ternary) -> ir.Expr:
        if not (has_call(e.then) or has_call(e.other)):
            cond, then, other = self.exprs(e.cond, e.then, e.other)
            return build.mux(cond, then, other)
        cond = self.expr(e.cond)
        result = self.variable("choice", self.type_of(e))
        with self.into([]) as then_body:
            self.emit(ir.Assign(result, self.expr(e.then)))
        with self.into([]) as other_body:
            self.emit(ir.Assign(result, self.expr(e.other)))
        self.emit(ir.If(cond, then_body, other_body))
        return result

    def _cast(self, e: ast.Cast) -> ir.Expr:
        target = self.type_of(e)
        value = self.expr(e.operand)
        if isinstance(target, Fields | Stack):
            return value
        return build.cast(target, value)

    def _listexpr(self, e: ast.ListExpr) -> ir.Expr:
        dots = bool(e.elements) and isinstance(e.elements[-1], ast.Dots)
        values = self.exprs(*(e.elements[:-1] if dots else e.elements))
        t = self.type_of(e)
        if isinstance(t, Stack):
            return self._stack_value(t, values)
        assert isinstance(t, Fields), t
        rest = [ir.Zero(f.type) for f in t.fields[len(values) :]]
        return ir.Make(t, [*values, *rest])

    def _stack_value(self, t: Stack, values: Sequence[ir.Expr]) -> ir.Expr:
        var = self.spill(ir.Zero(t), "stack")
        for i, v in enumerate(values):
            target = build.element(var, build.number(Bits(32), i))
            assert isinstance(target, ir.LValue)
            self.emit(ir.Assign(target, v))
        return var

    def _structexpr(self, e: ast.StructExpr) -> ir.Expr:
        t = self.type_of(e)
        assert isinstance(t, Fields), t
        values = dict(
            zip([n for n, _ in e.fields], self.exprs(*(v for _, v in e.fields)), strict=True)
        )
        return ir.Make(t, [values.get(f.name) or ir.Zero(f.type) for f in t.fields])

    def _invalidheader(self, e: ast.InvalidHeader) -> ir.Expr:
        return ir.Zero(self.type_of(e))

    _dots = _invalidheader

    # -- l-values ------------------------------------------------------------------------------

    def lvalue(self, e: ast.Expr) -> ir.LValue:
        """The storage `e` names; indexes are evaluated now."""
        match e:
            case ast.Index(base=base, index=index):
                stack, at = self.lvalue(base), self.expr(index)
                if not isinstance(at, ir.Const):
                    at = self.spill(at, "index")
                value = build.element(stack, at)
            case ast.Member(base=base) if isinstance(base.type, Fields):
                owner = self.lvalue(base)
                assert isinstance(owner.type, Fields)
                index_ = owner.type.index(e.name)
                assert index_ is not None
                value = build.field(owner, index_)
            case ast.Slice(base=base):
                whole = self.lvalue(base)
                lo = e.lo.const
                hi = e.hi.const if e.hi is not None else lo + e.width.const - 1  # type: ignore[union-attr]
                value = ir.SliceOf(Bits(hi - lo + 1), whole, hi, lo)
            case _:
                value = self.expr(e)
        assert isinstance(value, ir.LValue), value
        return value

    # -- statements ----------------------------------------------------------------------------

    def stmts(self, statements: Sequence[ast.Stmt]) -> None:
        for s in statements:
            self.stmt(s)

    def stmt(self, s: ast.Stmt) -> None:
        saved, self._span = self._span, s.span
        getattr(self, f"_{type(s).__name__.lower()}_stmt")(s)
        self._span = saved

    def _empty_stmt(self, s: ast.Empty) -> None:
        pass

    def _block_stmt(self, s: ast.Block) -> None:
        with self.scope():
            self.stmts(s.body)

    def _declstmt_stmt(self, s: ast.DeclStmt) -> None:
        self.declare(s.decl)

    def declare(self, decl: ast.Decl) -> None:
        """A local variable or instance. Constants need nothing: their uses are folded."""
        if isinstance(decl, ast.VarDecl):
            assert decl.type is not None
            t = erase(substitute(decl.type, self.env.types))
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
            value = build.binary(s.op[:-1], current, self.expr(s.value))
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

    def _switch_stmt(self, s: ast.Switch) -> None:
        codes: dict[str, int] = {}
        if isinstance(s.subject, ast.Member) and s.subject.name == "action_run":
            subject: ir.Expr = self.variable("action_run", CODE)
            assert isinstance(s.subject.base, ast.Call) and isinstance(subject, ir.Var)
            table = self._apply_table(s.subject.base, action_run=subject)
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
            subject = build.cast(Bits(1), subject)
        self.emit(ir.Switch(subject, cases, default))

    def _label(self, e: ast.Expr, codes: dict[str, int]) -> int:
        if isinstance(e, ast.Name) and e.name in codes:
            return codes[e.name]
        value = self.expr(e)
        assert isinstance(value, ir.Const)
        return int(value.value)

    # -- loops ---------------------------------------------------------------------------------

    def _loop_stmt(self, body: ast.Stmt, cond: object, update: object) -> None:
        """while (cond()) { body; update() }"""
        leave, again = ir.Block([], "break"), ir.Block([], "continue")
        round_: list[ir.Stmt] = []
        with self.repeating(), self.into(round_):
            self.emit(ir.If(cond(), [], [ir.Leave(leave)]))  # type: ignore[operator]
            self._loops.append((leave, again))
            self._branch(body, again.body)
            self._loops.pop()
            self.emit(again)
            update()  # type: ignore[operator]
        leave.body = [ir.Loop(round_)]
        self.emit(leave)

    def _for_stmt(self, s: ast.For) -> None:
        with self.scope():
            self.stmts(s.init)
            self._loop_stmt(s.body, lambda: self.expr(s.cond), lambda: self.stmts(s.update))

    def _forin_stmt(self, s: ast.ForIn) -> None:
        with self.scope():
            if isinstance(s.var, ast.VarDecl):
                self.declare(s.var)
                found = self.env.find(s.var)
                assert isinstance(found, ir.Var)
                var: ir.LValue = found
            else:
                var = self.lvalue(s.var)
            if isinstance(s.collection, ast.Range):
                self._for_range(s, var, s.collection)
            else:
                self._for_each(s, var)

    def _for_range(self, s: ast.ForIn, var: ir.LValue, bounds: ast.Range) -> None:
        """Counts in a wider type, so that a..max ends."""
        low, high = self.exprs(bounds.low, bounds.high)
        assert isinstance(var.type, Bits)
        wide = Bits(var.type.width + 1, var.type.signed)
        count = self.spill(build.cast(wide, low), "count")
        last = self.spill(build.cast(wide, high), "last")

        def more() -> ir.Expr:
            self.emit(ir.Assign(var, build.cast(var.type, count)))
            return build.binary("<=", count, last)

        def step() -> None:
            self.emit(ir.Assign(count, build.binary("+", count, build.number(wide, 1))))

        self._loop_stmt(s.body, more, step)

    def _for_each(self, s: ast.ForIn, var: ir.LValue) -> None:
        """Over a list, or the elements of a stack: the loop is unrolled."""
        leave = ir.Block([], "break")
        with self.repeating(), self.into(leave.body):
            for value in self._collection(s.collection):
                again = ir.Block([], "continue")
                self.emit(ir.Assign(var, value))
                self._loops.append((leave, again))
                self._branch(s.body, again.body)
                self._loops.pop()
                self.emit(again)
        self.emit(leave)

    def _collection(self, e: ast.Expr) -> list[ir.Expr]:
        if isinstance(e, ast.ListExpr):
            return [*self.exprs(*e.elements)]
        whole = self.expr(e)
        if isinstance(whole.type, Stack):
            copy = self.spill(whole, "elements")
            size = whole.type.size
            return [build.element(copy, build.number(Bits(32), i)) for i in range(size)]
        assert isinstance(whole, ir.Make), whole
        return list(whole.fields)

    def _break_stmt(self, s: ast.Break) -> None:
        self.emit(ir.Leave(self._loops[-1][0]))

    def _continue_stmt(self, s: ast.Continue) -> None:
        self.emit(ir.Leave(self._loops[-1][1]))

    # -- leaving -------------------------------------------------------------------------------

    @contextmanager
    def returns(self, result: ir.Var | None) -> Iterator[None]:
        """A body with its own `return`, emitted as a block."""
        saved, loops = self._return, self._loops
        block = ir.Block([], "return")
        self._return, self._loops = (block, result), []
        with self.into(block.body):
            yield
        self._return, self._loops = saved, loops
        if leaves(block.body, block):
            self.emit(block)
        else:
            self.out += block.body

    def _return_stmt(self, s: ast.Return) -> None:
        assert self._return is not None
        block, result = self._return
        if s.value is not None and result is not None:
            self.emit(ir.Assign(result, self.expr(s.value)))
        self.emit(ir.Leave(block))

    def _exit_stmt(self, s: ast.Exit) -> None:
        for copies in reversed(self._copy_outs):
            self.out += copies
        self.emit(ir.Exit())

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, e: ast.Call) -> ir.Expr:
        result = self.call(e, wanted=True)
        assert result is not None, e
        return result

    def call(self, e: ast.Call, wanted: bool) -> ir.Expr | None:
        """Emits a call; returns its value if it has one."""
        info: CallInfo = e.info
        match info.kind:
            case "function" | "action":
                return self._inline_callable(e, info)
            case "builtin":
                return self._builtin(info)
            case "table":
                self._apply_table(e)
                return None
            case "block":
                self.apply_block(info)
                return None
        return self._extern(e, info, wanted)

    def _builtin(self, info: CallInfo) -> ir.Expr | None:
        assert info.base is not None
        if info.name == "isValid":
            return build.valid(self.expr(info.base))
        target = self.lvalue(info.base)
        if info.name in ("setValid", "setInvalid"):
            self.emit(ir.SetValid(target, info.name == "setValid"))
            return None
        count = info.args[0]
        assert count is not None
        kind = ir.Push if info.name == "push_front" else ir.Pop
        self.emit(kind(target, count.const))
        return None

    def _apply_table(
        self,
        e: ast.Call,
        hit: ir.Var | None = None,
        action_run: ir.Var | None = None,
    ) -> ir.Table:
        base = e.info.base
        assert isinstance(base, ast.Name)
        table = self.env.find(base.decl)
        assert isinstance(table, ir.Table), base.name
        self.emit(ir.ApplyTable(table, hit, action_run))
        return table

    # -- inlining ------------------------------------------------------------------------------

    def _inline_callable(self, e: ast.Call, info: CallInfo) -> ir.Expr | None:
        """A P4 function, or an action called directly."""
        decl = info.decl
        assert isinstance(decl, ast.FunctionDecl | ast.ActionDecl) and decl.body is not None
        result = None
        if not isinstance(info.signature.result, Void):
            result = self.variable(
                "result", erase(substitute(info.signature.result, self.env.types))
            )
        outer = self.env
        home = self.p.top
        if isinstance(decl, ast.ActionDecl):
            found = outer.find(decl)
            home = found.env if isinstance(found, ActionInstance) else self.p.top
        variables = self.p.checker.types.variables(decl)
        types = {
            v: substitute(t, outer.types) for v, t in zip(variables, info.type_args, strict=False)
        }
        inner = home.inner({**home.types, **types})
        copies = self._bind_arguments(
            info, decl.params, inner, by_reference=isinstance(decl, ast.FunctionDecl)
        )
        self._copy_outs.append(copies)
        with self.scope(inner), self.returns(result):
            self.stmts(decl.body.body)
        self._copy_outs.pop()
        self.out += copies
        return result

    def apply_block(self, info: CallInfo) -> None:
        """A sub-control's body, in place."""
        instance = self.block_instance(info)
        env, copies = self.enter_block(info, instance)
        decl = instance.decl
        assert isinstance(decl, ast.ControlDecl)
        self._copy_outs.append(copies)
        with self.scope(env), self.returns(None):
            self.initialise(decl.locals, again=instance.sites > 1)
            with self.scope():
                self.stmts(decl.body.body)
        self._copy_outs.pop()
        self.out += copies

    def block_instance(self, info: CallInfo) -> BlockInstance:
        if info.constructed is not None:  # C.apply(): an instance of its own, named C
            return self.p.direct_instance(info, self.env)
        assert isinstance(info.base, ast.Name)
        found = self.env.find(info.base.decl)
        assert isinstance(found, BlockInstance), info.base.name
        return found

    def enter_block(self, info: CallInfo, instance: BlockInstance) -> tuple[Env, list[ir.Stmt]]:
        """Binds the arguments and, the first time, makes the block's own objects."""
        decl = instance.decl
        if instance.elaborated is None:
            env = instance.env.inner()
            env.path = instance.name
            by_reference = instance.sites == 1 and not self.repeats
            copies = self._bind_arguments(info, decl.params, env, by_reference)
            self.p.elaborate(decl, env, self)
            instance.elaborated = env
            return env, copies
        env = instance.elaborated
        return env, self._rebind_arguments(info, decl.params, env)

    def initialise(self, members: Sequence[ast.Decl], again: bool = False) -> None:
        """Gives a block's own variables their first values; `again`: it may have run before."""
        for member in members:
            if isinstance(member, ast.VarDecl):
                var = self.env.find(member)
                assert isinstance(var, ir.Var)
                if member.init is not None:
                    self.emit(ir.Assign(var, self.expr(member.init)), member.span)
                elif again or self.repeats:
                    self.emit(ir.Assign(var, ir.Zero(var.type)), member.span)

    def _bind_arguments(
        self, info: CallInfo, params: Sequence[ast.Param], env: Env, by_reference: bool
    ) -> list[ir.Stmt]:
        """Binds each parameter; returns the statements that copy results out afterwards."""
        values = self._argument_values(info)
        copies: list[ir.Stmt] = []
        for i, (param, value) in enumerate(zip(params, values, strict=True)):
            formal = info.signature.params[i]
            t_checked = substitute(formal.type, self.env.types)
            if value is None or not isinstance(value, ir.Expr):
                self._bind_object(param, value, formal.direction, t_checked, env)
                continue
            others = [v for j, v in enumerate(values) if j != i and isinstance(v, ir.Expr)]
            if by_reference and self._shareable(param.direction, value, others):
                if param.direction == "out":
                    assert isinstance(value, ir.LValue)
                    self.emit(ir.Assign(value, ir.Zero(value.type)))
                env.bind(param, value)
                continue
            var = self.variable(param.name, erase(t_checked))
            env.bind(param, var)
            self._copy(param.direction, var, value, copies)
        return copies

    def _bind_object(
        self, param: ast.Param, value: object, direction: str, t: Type, env: Env
    ) -> None:
        """packet_in, extern instances; or an argument left out: `_` or @optional."""
        if value is None:
            env.bind(param, self.spill(ir.Zero(erase(t)), param.name))
        else:
            env.bind(param, value)  # type: ignore[arg-type]

    def _rebind_arguments(
        self, info: CallInfo, params: Sequence[ast.Param], env: Env
    ) -> list[ir.Stmt]:
        """A further apply of the same instance: its parameters are variables already."""
        copies: list[ir.Stmt] = []
        for param, value in zip(params, self._argument_values(info), strict=True):
            bound = env.find(param)
            if not (isinstance(bound, ir.LValue) and isinstance(value, ir.Expr)):
                continue
            if path(bound) != path(value):
                self._copy(param.direction, bound, value, copies)
        return copies

    def _copy(self, direction: str, var: ir.Var, value: ir.Expr, copies: list[ir.Stmt]) -> None:
        if direction == "out":
            if self.repeats:
                self.emit(ir.Assign(var, ir.Zero(var.type)))
        else:
            self.emit(ir.Assign(var, value))
        if direction in ("out", "inout"):
            assert isinstance(value, ir.LValue)
            copies.append(ir.Assign(value, var, span=self._span))

    def _argument_values(self, info: CallInfo) -> list[object]:
        """Arguments from left to right: l-values for out and inout, otherwise values or objects."""
        values: list[object] = []
        for i, (arg, param) in enumerate(zip(info.args, info.signature.params, strict=True)):
            if arg is None:
                values.append(None)
            elif param.direction in ("out", "inout"):
                values.append(self.lvalue(arg))
            elif (found := self._object(arg)) is not None:
                values.append(found)
            else:
                value = self.expr(arg)
                later = [a for a in info.args[i + 1 :] if a is not None]
                if not isinstance(value, ir.Const) and any(map(has_call, later)):
                    value = self.spill(value)
                values.append(value)
        return values

    def _object(self, arg: ast.Expr) -> object | None:
        if isinstance(arg, ast.Name) and arg.decl is not None and arg.const is None:
            found = self.env.find(arg.decl)
            if found is not None and not isinstance(found, ir.Expr):
                return found
        return None

    def _shareable(self, direction: str, value: ir.Expr, others: Sequence[ir.Expr]) -> bool:
        """Whether a parameter may simply be another name for its argument."""
        if isinstance(value, ir.Const):
            return direction in ("", "in")
        if not independent(value):
            return False
        return not any(overlap(value, o) for o in others)

    # -- externs -------------------------------------------------------------------------------

    def _extern(self, e: ast.Call, info: CallInfo, wanted: bool) -> ir.Expr | None:
        if info.kind == "method":
            assert info.base is not None
            instance = self._object(info.base)
            if instance is PACKET:
                return self._packet(e, info)
        else:
            instance = None
            if info.name == "verify":
                cond, error = self.exprs(*(a for a in info.args if a is not None))
                self.emit(ir.Verify(cond, error))
                return None
            if info.name == "static_assert":
                return self._static_assert(e, info)
        assert instance is None or isinstance(instance, ir.ExternInstance), instance
        args, directions = self._extern_arguments(info)
        result = None
        if not isinstance(info.signature.result, Void):
            result = self.variable(info.name, self.type_of(e))
        self.emit(
            ir.CallExtern(
                instance,
                info.name,
                args,
                directions,
                result,
                [erase(substitute(t, self.env.types)) for t in info.type_args],
            )
        )
        return result

    def _extern_arguments(self, info: CallInfo) -> tuple[list[ir.Expr], list[str]]:
        args: list[ir.Expr] = []
        for arg, value in zip(info.args, self._argument_values(info), strict=True):
            if arg is not None and isinstance(arg.const, EnumValue):
                value = ir.Const(STRING, arg.const.name)
            if isinstance(value, ir.Expr):
                args.append(value)
        return args, [p.direction for p in info.signature.params][: len(args)]

    def _static_assert(self, e: ast.Call, info: CallInfo) -> ir.Expr:
        cond = info.args[0]
        assert cond is not None
        value = self.expr(cond)
        if not isinstance(value, ir.Const):
            self.p.reporter.error(e.span, "static_assert needs a value known at compile time")
        elif not value.value:
            message = info.args[1].const if len(info.args) > 1 and info.args[1] else ""
            self.p.reporter.error(e.span, f"static_assert failed: {message}".rstrip(": "))
        return build.TRUE

    def _packet(self, e: ast.Call, info: CallInfo) -> ir.Expr | None:
        """Methods of packet_in and packet_out."""
        match info.name:
            case "extract":
                return self._extract(info)
            case "emit":
                assert info.args[0] is not None
                self.emit(ir.Emit(self.expr(info.args[0])))
                return None
            case "advance":
                assert info.args[0] is not None
                self.emit(ir.Advance(self.expr(info.args[0])))
                return None
        target = self.variable(info.name, self.type_of(e))
        kind = ir.Lookahead if info.name == "lookahead" else ir.PacketLength
        self.emit(kind(target))
        return target

    def _extract(self, info: CallInfo) -> None:
        target, *size = info.args
        if target is None:  # extract<T>(_): skips a T
            t = erase(substitute(info.type_args[0], self.env.types))
            self.emit(ir.Extract(self.variable("skipped", t)))
            return
        place = self.lvalue(target)
        bits = self.expr(size[0]) if size and size[0] is not None else None
        self.emit(ir.Extract(place, bits))

    # -- table actions -------------------------------------------------------------------------

    def action_body(
        self, action: ActionInstance, bound: Sequence[ast.Expr], data: list[ir.Var]
    ) -> list[ir.Stmt]:
        """The IR body of an action used by a table. `data` takes its directionless parameters;
        `bound` are the arguments the table gives for the others."""
        with self.into([]) as out, self.repeating():
            inner = action.env.inner()
            copies: list[ir.Stmt] = []
            arguments = iter(bound)
            for param in action.decl.params:
                assert param.type is not None
                t = erase(param.type)
                annotations = self.p.checker.annotations(param.annotations)
                var = self.p.variable(param.name, t)
                if not param.direction:
                    var.annotations, var.type_name = annotations, type_name(param.type)
                    data.append(var)
                else:
                    self.locals.append(var)
                    arg = next(arguments)
                    if param.direction == "in":
                        self.emit(ir.Assign(var, self.expr(arg)))
                    else:
                        self._copy(param.direction, var, self.lvalue(arg), copies)
                inner.bind(param, var)
            self._copy_outs.append(copies)
            with self.scope(inner), self.returns(None):
                self.stmts(action.decl.body.body)
            self._copy_outs.pop()
            self.out += copies
        return out


def has_call(e: ast.Expr | None) -> bool:
    """Whether evaluating `e` may have an effect."""
    match e:
        case None:
            return False
        case _ if e.const is not None:
            return False
        case ast.Call(info=info):
            return not (
                info.kind == "builtin" and info.name == "isValid" and not has_call(info.base)
            )
        case ast.Member(base=x) | ast.Unary(operand=x) | ast.Cast(operand=x):
            return has_call(x)
        case ast.Slice(base=x):
            return has_call(x)
        case ast.Index(base=x, index=y) | ast.Binary(left=x, right=y):
            return has_call(x) or has_call(y)
        case ast.Ternary(cond=x, then=y, other=z):
            return has_call(x) or has_call(y) or has_call(z)
        case ast.ListExpr(elements=elements):
            return any(map(has_call, elements))
        case ast.StructExpr(fields=fields):
            return any(has_call(v) for _, v in fields)
    return False


def leaves(statements: Sequence[ir.Stmt], block: ir.Block) -> bool:
    """Whether a Leave of this block stands in the statements."""
    for s in statements:
        match s:
            case ir.Leave(block=target):
                if target is block:
                    return True
            case ir.If(then=then, other=other):
                if leaves(then, block) or leaves(other, block):
                    return True
            case ir.Switch(cases=cases, default=default):
                if leaves(default, block) or any(leaves(b, block) for _, b in cases):
                    return True
            case ir.Block(body=body) | ir.Loop(body=body):
                if leaves(body, block):
                    return True
    return False


def _grouped(cases: Sequence[ast.SwitchCase]) -> Iterator[tuple[list[ast.Expr], ast.Block | None]]:
    """Labels that share a body: one without a body falls through to the next."""
    labels: list[ast.Expr] = []
    for case in cases:
        labels.append(case.label)
        if case.body is not None:
            yield labels, case.body
            labels = []
    if labels:
        yield labels, None
