"""Lower expressions to pure IR; their calls are emitted before, in evaluation order.

The arguments of calls are lowered here, too. `Frame` is the state of the lowering of one top-level
parser or control.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gradplane.switch.check.checker_types import ANY, ExternType, innermost
from gradplane.switch.check.records import MAX_BITS, CallInfo, EnumValue
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    STRING,
    Array,
    Bits,
    Fields,
    Integer,
    Stack,
    Struct,
    Type,
)
from gradplane.switch.ir.walk import nested
from gradplane.switch.lower.shared_state import Binding, Env, InstanceArray, Shared
from gradplane.switch.lower.type_erasure import CODE, erase
from gradplane.switch.source import NOWHERE, Span
from gradplane.switch.syntax import ast


class Frame:
    """A block being lowered: `out` receives its statements, `locals` every variable made."""

    def __init__(self, lowering: Shared) -> None:
        self.p = lowering
        self.out: list[ir.Stmt] = []
        self.locals: list[ir.Var] = []
        self.env = Env(lowering.top)
        self.repeats = False  # whether this place may run more than once a packet
        self._return: tuple[ir.Block, ir.Var | None] | None = None
        self._loops: list[tuple[ir.Block, ir.Block]] = []  # for break, for continue
        self._copy_outs: list[list[ir.Stmt]] = []  # of the enclosing calls, for exit
        self._nested = False  # whether inside a sub-control
        self._often = False  # whether inside a sub-control that is applied in several places
        self._exit: ir.Block | None = None  # what exit leaves in a nested table's action
        self._exiting: ir.Var | None = None
        self._exit_bodies: list[list[ir.Stmt]] = []  # bodies of the actions that may set `_exiting`
        self._acting = False  # whether inside an action
        self._table_digest: ir.Var | None = None
        self._span = NOWHERE
        self.chosen: dict[ast.Index, int] = {}  # run-time indices, where a value of them is known

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

    @contextmanager
    def nesting(self) -> Iterator[None]:
        saved, self._nested = self._nested, True
        try:
            yield
        finally:
            self._nested = saved

    @contextmanager
    def acting(self) -> Iterator[None]:
        saved, self._acting = self._acting, True
        try:
            yield
        finally:
            self._acting = saved

    def variable(self, name: str, t: Type) -> ir.Var:
        var = self.p.variable(name, t)
        self.locals.append(var)
        return var

    def spill(self, e: ir.Expr, name: str = "tmp") -> ir.Var:
        """Return a new variable that holds the current value of `e`."""
        var = self.variable(name, e.type)
        self.emit(ir.Assign(var, e))
        return var

    def table_digest(self) -> ir.Var:
        """Return the variable with the digest of the table applied last (table_lowering.py)."""
        if self._table_digest is None:
            self._table_digest = self.variable("digest", Bits(64))
        return self._table_digest

    def type_of(self, e: ast.Expr) -> Type:
        assert e.type is not None, e
        return erase(self.env.resolved(e.type))

    @contextmanager
    def returns(self, result: ir.Var | None) -> Iterator[None]:
        """Emit, in this context, a body whose `return` leaves the body only."""
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


def leaves(statements: Sequence[ir.Stmt], block: ir.Block) -> bool:
    """Return whether the statements contain a Leave of this block."""
    return any(isinstance(s, ir.Leave) and s.block is block for s in nested(statements))


class ExpressionLowering(Frame):
    @abstractmethod
    def call(self, e: ast.Call, wanted: bool) -> ir.Expr | None:
        """Emit a call; return its value if it has one."""

    @abstractmethod
    def apply_table(
        self, e: ast.Call, hit: ir.Var | None = None, action_run: ir.Var | None = None
    ) -> ir.Table:
        """Emit a table's apply, which stores its outcome in the given variables."""

    # -- expressions ---------------------------------------------------------------------------

    def expr(self, e: ast.Expr) -> ir.Expr:
        """Return a pure expression with the value of `e`; its calls are emitted before."""
        if e.const is not None:
            return self._constant(e)
        value: ir.Expr = _EXPRESSIONS[type(e)](self, e)
        if isinstance(value, ir.Const) and value.type == INTEGER != e.type:
            return expression_builder.number(self.type_of(e), int(value.value))
        return value

    def exprs(self, *es: ast.Expr) -> list[ir.Expr]:
        """Lower operands from left to right; one that a later call could change is saved."""
        out: list[ir.Expr] = []
        for i, e in enumerate(es):
            value = self.expr(e)
            if not isinstance(value, ir.Const) and any(map(has_call, es[i + 1 :])):
                value = self.spill(value)
            out.append(value)
        return out

    def _constant(self, e: ast.Expr) -> ir.Expr:
        if type(e.type) is Bits and type(e.const) is int:
            return ir.Const(e.type, e.const, _base(e))
        t = self.type_of(e)
        if isinstance(e.const, EnumValue):
            return ir.Const(CODE, self.p.member_code(e.const))
        if isinstance(e.const, str):
            return ir.Const(STRING, e.const)
        if e.type == INTEGER:
            return ir.Const(INTEGER, e.const)
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
        return expression_builder.field(base, index)

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
        self.apply_table(call, hit=hit)
        return expression_builder.unary("!", hit) if name == "miss" else hit

    def _index(self, e: ast.Index) -> ir.Expr:
        base, index = self.exprs(e.base, e.index)
        if isinstance(base.type, Struct):  # a tuple
            assert isinstance(index, ir.Const) and isinstance(index.value, int)
            return expression_builder.field(base, index.value)
        self._inside(e, base, index)
        if isinstance(base, ir.Make) and not isinstance(index, ir.Const):
            base = self.spill(base, "elements")
        return expression_builder.element(base, index)

    def _inside(self, e: ast.Index, base: ir.Expr, index: ir.Expr) -> None:
        """Check an index that depends on a constructor's argument."""
        assert isinstance(base.type, Array)
        if isinstance(index, ir.Const) and not 0 <= int(index.value) < base.type.size:
            what = f"index {index.value} is outside {base.type}"
            self.p.reporter.error(e.index.span, what)

    def _slice(self, e: ast.Slice) -> ir.Expr:
        base = self.expr(e.base)
        return expression_builder.slice_of(base, *bounds(e))

    def _unary(self, e: ast.Unary) -> ir.Expr:
        return expression_builder.unary(e.op, self.expr(e.operand))

    def _binary(self, e: ast.Binary) -> ir.Expr:
        if e.op in ("&&", "||") and has_call(e.right):
            return self._short_circuit(e)
        left, right = self.exprs(e.left, e.right)
        if e.op in ("==", "!="):
            same = expression_builder.equal(left, right)
            return same if e.op == "==" else expression_builder.unary("!", same)
        return self.operation(e.op, left, right, e.right)

    def operation(self, op: str, left: ir.Expr, right: ir.Expr, place: ast.Expr) -> ir.Expr:
        """Build `left op right`; constructor arguments may have made its value undefined."""
        why = _undefined(op, left, right)
        if why:
            self.p.reporter.error(place.span, why)
            return left
        return expression_builder.binary(op, left, right)

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
            return expression_builder.mux(cond, then, other)
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
        if isinstance(target, Fields | Array):
            return value
        return expression_builder.cast(target, value)

    def _listexpr(self, e: ast.ListExpr) -> ir.Expr:
        dots = bool(e.elements) and isinstance(e.elements[-1], ast.Dots)
        values = self.exprs(*(e.elements[:-1] if dots else e.elements))
        t = self.type_of(e)
        if isinstance(t, Stack):
            return self._stack_value(t, values)
        assert isinstance(t, Fields | Array), t
        types = [f.type for f in t.fields] if isinstance(t, Fields) else [t.element] * t.size
        return ir.Make(t, [*values, *map(expression_builder.zero, types[len(values) :])])

    def _stack_value(self, t: Stack, values: Sequence[ir.Expr]) -> ir.Expr:
        var = self.spill(ir.Zero(t), "stack")
        for i, v in enumerate(values):
            target = expression_builder.element(var, expression_builder.number(Bits(32), i))
            assert isinstance(target, ir.LValue)
            self.emit(ir.Assign(target, v))
        return var

    def _structexpr(self, e: ast.StructExpr) -> ir.Expr:
        t = self.type_of(e)
        assert isinstance(t, Fields), t
        values = dict(
            zip([n for n, _ in e.fields], self.exprs(*(v for _, v in e.fields)), strict=True)
        )
        return ir.Make(t, [values.get(f.name) or expression_builder.zero(f.type) for f in t.fields])

    def _default(self, e: ast.InvalidHeader | ast.Dots) -> ir.Expr:
        return expression_builder.zero(self.type_of(e))

    def _call(self, e: ast.Call) -> ir.Expr:
        result = self.call(e, wanted=True)
        assert result is not None, e
        return result

    # -- l-values ------------------------------------------------------------------------------

    def lvalue(self, e: ast.Expr) -> ir.LValue:
        """Return the storage that `e` names; indexes are evaluated now."""
        match e:
            case ast.Index(base=base, index=index):
                stack, at = self.lvalue(base), self.expr(index)
                self._inside(e, stack, at)
                if not isinstance(at, ir.Const):
                    at = self.spill(at, "index")
                value = expression_builder.element(stack, at)
            case ast.Member(base=base) if isinstance(base.type, Fields):
                owner = self.lvalue(base)
                assert isinstance(owner.type, Fields)
                index_ = owner.type.index(e.name)
                assert index_ is not None
                value = expression_builder.field(owner, index_)
            case ast.Slice(base=base):
                whole = self.lvalue(base)
                hi, lo = bounds(e)
                value = ir.SliceOf(Bits(hi - lo + 1), whole, hi, lo)
            case _:
                value = self.expr(e)
        assert isinstance(value, ir.LValue), value
        return value


_EXPRESSIONS: dict[type[ast.Expr], Callable[..., ir.Expr]] = by_class(
    ast.Expr,
    {
        ast.Name: ExpressionLowering._name,
        ast.Member: ExpressionLowering._member,
        ast.Index: ExpressionLowering._index,
        ast.Slice: ExpressionLowering._slice,
        ast.Unary: ExpressionLowering._unary,
        ast.Binary: ExpressionLowering._binary,
        ast.Ternary: ExpressionLowering._ternary,
        ast.Cast: ExpressionLowering._cast,
        ast.Call: ExpressionLowering._call,
        ast.ListExpr: ExpressionLowering._listexpr,
        ast.StructExpr: ExpressionLowering._structexpr,
        (ast.InvalidHeader, ast.Dots): ExpressionLowering._default,
    },
    without=(
        *(ast.IntLit, ast.BoolLit, ast.StringLit, ast.TypeExpr),  # constants, and no values
        *(ast.Range, ast.Mask, ast.DefaultKey, ast.TupleKey),  # in keysets only
    ),
)


def _undefined(op: str, left: ir.Expr, right: ir.Expr) -> str:
    """Return why an operation on these constants is undefined; empty if it is defined."""
    if not isinstance(right, ir.Const) or isinstance(right.value, str):
        return ""
    b, a = int(right.value), int(left.value) if isinstance(left, ir.Const) else 0
    match op:
        case "/" | "%" if b == 0:
            return "division by zero"
        case "/" | "%" if a < 0 or b < 0:
            return f"{op} is not defined for negative numbers"
        case "<<" | ">>" if b < 0:
            return f"the amount of a shift cannot be negative ({b})"
        case "<<" if left.type == INTEGER and b > MAX_BITS:
            return f"the amount of a shift is too large ({b})"
        case "*" if left.type == INTEGER and a.bit_length() + b.bit_length() > MAX_BITS:
            return f"the product has more than {MAX_BITS} bits"
    return ""


def has_call(e: ast.Expr | None) -> bool:
    """Return whether evaluating `e` may have side effects."""
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


def _base(e: ast.Expr) -> int:
    """Return the base that a constant's first digits have in the source."""
    match e:
        case ast.IntLit():
            return e.base
        case ast.Cast():
            return _base(e.operand)
        case ast.Binary():
            return _base(e.left)
        case ast.Name(decl=ast.ConstDecl() as decl):
            return _base(decl.value)
    return 10


def bounds(e: ast.Slice) -> tuple[int, int]:
    """Return the high and low bit of a slice, also of `[lo +: width]`."""
    low: int = e.lo.const
    if e.hi is not None:
        return e.hi.const, low
    assert e.width is not None
    return low + e.width.const - 1, low


class ArgumentLowering(ExpressionLowering):
    @abstractmethod
    def stmts(self, statements: Sequence[ast.Stmt]) -> None:
        """Lower statements."""

    # -- arguments -----------------------------------------------------------------------------

    def argument_values(self, info: CallInfo) -> tuple[list[Binding | None], dict[int, ir.Var]]:
        """Evaluate arguments in order: l-values for out and inout, else values or objects.

        A value that evaluating a later argument may change is saved before; for an inout argument
        the second result has the variable it was saved in.
        """
        values: list[Binding | None] = [None] * len(info.args)
        saved: dict[int, ir.Var] = {}
        order = [(i, arg) for i in info.order if (arg := info.args[i]) is not None]
        for n, (i, arg) in enumerate(order):
            direction = info.signature.params[i].direction
            changes = any(has_call(later) for _, later in order[n + 1 :])
            if direction in ("out", "inout"):
                place = values[i] = self._settled(self.lvalue(arg))
                if direction == "inout" and changes:
                    saved[i] = self.spill(place)
            elif (found := self.object_of(arg)) is not None:
                values[i] = found
            else:
                value = self.expr(arg)
                if not isinstance(info.signature.params[i].type, Integer):
                    value = _typed(value)
                keep = isinstance(value, ir.Const) or not changes
                values[i] = value if keep else self.spill(value)
        return values, saved

    def _settled(self, place: ir.Expr) -> ir.LValue:
        """Return the storage that an argument names now, whatever `next` and `last` are later."""
        match place:
            case ir.FieldOf(base=base, index=index):
                place = expression_builder.field(self._settled(base), index)
            case ir.ElementOf(base=base, index=index):
                place = expression_builder.element(self._settled(base), index)
            case ir.SliceOf(base=base, hi=hi, lo=lo):
                place = ir.SliceOf(place.type, self._settled(base), hi, lo)
            case ir.NextOf(base=base) | ir.LastOf(base=base):
                place = self._stack_end(self._settled(base), following=isinstance(place, ir.NextOf))
        assert isinstance(place, ir.LValue), place
        return place

    def _stack_end(self, stack: ir.LValue, following: bool) -> ir.Expr:
        """Return the next or last element of a stack as an element with an index."""
        assert isinstance(stack.type, Stack), stack.type
        last = ir.LastIndex(Bits(32), stack)
        index = (
            expression_builder.binary("+", last, expression_builder.number(last.type, 1))
            if following
            else last
        )
        at = self.spill(index, "index")
        inside = expression_builder.binary(
            "<", at, expression_builder.number(at.type, stack.type.size)
        )
        outside = self.p.error_code("StackOutOfBounds")
        self.emit(ir.Verify(inside, ir.Const(CODE, outside)))
        return expression_builder.element(stack, at)

    def copy_out(self, target: ir.Expr, value: ir.Expr) -> ir.Stmt:
        assert isinstance(target, ir.LValue), target
        return ir.Assign(target, value, span=self._span)

    def object_of(self, arg: ast.Expr) -> Binding | None:
        if isinstance(arg, ast.Name) and arg.decl is not None and arg.const is None:
            found = self.env.find(arg.decl)
            if found is not None and not isinstance(found, ir.Expr):
                return found
        if isinstance(arg, ast.Index) and isinstance(innermost(arg.type or ANY), ExternType):
            return self._element_object(arg)
        return None

    def _element_object(self, e: ast.Index) -> Binding:
        """Return an element of an array of extern instances."""
        array = self.object_of(e.base)
        assert isinstance(array, InstanceArray), e
        if e in self.chosen:
            return array.elements[self.chosen[e]]
        index = self.expr(e.index)
        if not isinstance(index, ir.Const):
            what = "an extern instance with a run-time index can only have its methods called"
            self.p.reporter.error(e.index.span, what)
        elif 0 <= int(index.value) < len(array.elements):
            return array.elements[int(index.value)]
        else:
            what = f"index {index.value} is outside an array of {len(array.elements)} instances"
            self.p.reporter.error(e.index.span, what)
        return array.elements[0]


def _typed(value: ir.Expr) -> ir.Expr:
    """Give an index without a type, which an extern made with the type `_` takes, 32 bits."""
    whole = isinstance(value.type, Integer)
    return expression_builder.cast(Bits(32), value) if whole else value
