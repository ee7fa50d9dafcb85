"""Types and compile-time values of expressions (specification, chapter 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import (
    ANY,
    MAX_WIDTH,
    ActionRun,
    ApplyResult,
    DefaultLiteral,
    ListLiteral,
    SetType,
    Signature,
    StructLiteral,
    TableType,
    TypeName,
    is_value,
)
from gradplane.switch.check.context import TypeParam
from gradplane.switch.check.conversions import cast_allowed, coerce
from gradplane.switch.check.expression_text import describe
from gradplane.switch.check.operators import OperatorChecker
from gradplane.switch.check.records import EnumValue
from gradplane.switch.ir import ops
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    INTEGER,
    MATCH_KIND,
    STRING,
    VOID,
    Array,
    Bits,
    Enum,
    Error,
    Fields,
    Integer,
    SerEnum,
    Stack,
    Tuple,
    Type,
)
from gradplane.switch.syntax import ast

_STACK_MEMBERS = {"next", "last", "lastIndex", "size"}
BIT32 = Bits(32)


class ExpressionChecker(OperatorChecker):
    # -- entry points --------------------------------------------------------------------------

    def check(self, e: ast.Expr) -> Type:
        """Set and return the type of `e` without regard to its context; also set its constant."""
        t: Type = _EXPRESSIONS[type(e)](self, e)
        e.type = t
        return t

    def check_as(self, e: ast.Expr, target: Type, what: str) -> bool:
        """Check `e` and convert it implicitly to `target`; report an error if it cannot be."""
        self.check(e)
        return self.coerce(e, target, what)

    def coerce(self, e: ast.Expr, target: Type, what: str) -> bool:
        return coerce(self.c, e, target, what)

    def value(self, e: ast.Expr) -> Type:
        """Check an expression that must be a value (not a type, table, action, ...)."""
        self.check(e)
        self.require_value(e)
        assert e.type is not None
        return e.type

    def require_value(self, e: ast.Expr) -> None:
        """Report an error if a checked expression has no value."""
        if e.type == VOID:
            e.type = self._fail(e, "this call returns no value")
        elif isinstance(e.type, ActionRun):
            e.type = self._fail(e, "action_run can only be the whole expression of a switch")
        elif e.type is not None and not is_value(e.type):
            what = f"{describe(e)}: {e.type}" if isinstance(e.type, Signature) else str(e.type)
            e.type = self._fail(e, f"{what} is not a value")

    # -- leaves --------------------------------------------------------------------------------

    def _intlit(self, e: ast.IntLit) -> Type:
        e.const = e.value
        if e.width is None:
            return INTEGER
        t = Bits(e.width, e.signed)
        if not 1 <= e.width <= MAX_WIDTH:
            what = f"the width of a literal must be 1 to {MAX_WIDTH}, not {e.width}"
            return self._fail(e, what)
        low, high = ops.limits(t)
        if not low <= e.value <= high:
            what = f"{e.value} does not fit {t}: only its low {e.width} bits are kept"
            self.c.warn(e, "overflow", what)
            e.const = ops.wrap(t)(e.value)
        return t

    def _boollit(self, e: ast.BoolLit) -> Type:
        e.const = e.value
        return BOOL

    def _stringlit(self, e: ast.StringLit) -> Type:
        e.const = e.value
        return STRING

    def _dots(self, e: ast.Dots) -> Type:
        return DefaultLiteral("...")

    def _invalidheader(self, e: ast.InvalidHeader) -> Type:
        return DefaultLiteral("{#}")

    def _typeexpr(self, e: ast.TypeExpr) -> Type:
        return TypeName(self.c.types.resolve(e.ref))

    def _name(self, e: ast.Name) -> Type:
        found = self.c.scopes.find(e.name, e.dot)
        if not found and e.name in self.c.match_kinds:
            e.const = EnumValue(MATCH_KIND, e.name)
            return MATCH_KIND
        if not found:
            return self._fail(e, f"{e.name} is not declared", self.c.scopes.nearest(e.name))
        decl = e.decl = found[0]
        match decl:
            case ast.ConstDecl():
                e.const = decl.value.const
                return decl.type or ANY
            case ast.VarDecl() | ast.Param() | ast.Instantiation():
                return decl.type or ANY
            case TypeParam():
                return TypeName(decl.var)
            case ast.TableDecl():
                return TableType(decl)
            case ast.ValueSetDecl():
                return SetType(self.c.types.resolve(decl.ref))
            case ast.FunctionDecl() | ast.ActionDecl():
                return self.c.calls.signature(decl)
        declared = self.c.types.declared(decl)
        if declared is None:
            return self._fail(e, f"{e.name} is not a value")
        return TypeName(declared)

    # -- selection -----------------------------------------------------------------------------

    def _member(self, e: ast.Member) -> Type:
        base = self.check(e.base)
        match base:
            case TypeName(denoted=denoted):
                return self._type_member(e, denoted)
            case Fields():
                return self._field(e, base)
            case Stack():
                return self._stack_member(e, base)
            case Array():
                return self._fail(
                    e,
                    f"{base} has no member {e.name}",
                    "next, last, lastIndex and size are for stacks of headers",
                )
            case ApplyResult(decl=decl):
                return self._apply_member(e, decl)
            case _ if base == ANY:
                return ANY
        return self._fail(e, f"{base} has no member {e.name}")

    def _type_member(self, e: ast.Member, denoted: Type) -> Type:
        match denoted:
            case Enum(members=members) if e.name in members:
                e.const = EnumValue(denoted, e.name)
                return denoted
            case SerEnum(values=values) if e.name in values:
                e.const = values[e.name]
                return denoted
            case Error() if e.name in self.c.errors:
                e.const = EnumValue(ERROR, e.name)
                return ERROR
            case Enum(members=known):
                hint = did_you_mean(e.name, known)
            case SerEnum(values=known):
                hint = did_you_mean(e.name, known)
            case Error():
                hint = did_you_mean(e.name, self.c.errors)
            case _:
                hint = ""
        if denoted == ANY:
            return ANY
        return self._fail(e, f"{denoted} has no member {e.name}", hint)

    def _field(self, e: ast.Member, base: Fields) -> Type:
        index = base.index(e.name)
        if index is None:
            hint = did_you_mean(e.name, [f.name for f in base.fields])
            return self._fail(e, f"{base} has no field {e.name}", hint)
        e.const = _constant_part(e)
        return base.fields[index].type

    def _stack_member(self, e: ast.Member, base: Stack) -> Type:
        if e.name not in _STACK_MEMBERS:
            hint = "a stack has next, last, lastIndex, size, push_front and pop_front"
            return self._fail(e, f"{base} has no member {e.name}", hint)
        if e.name == "size":
            e.const = base.size
            return BIT32
        if self.c.context != "parser":
            return self._fail(e, f"stack.{e.name} can only be used in a parser")
        return BIT32 if e.name == "lastIndex" else base.element

    def _apply_member(self, e: ast.Member, decl: ast.TableDecl) -> Type:
        if e.name in ("hit", "miss"):
            return BOOL
        if e.name == "action_run":
            return ActionRun(decl)
        return self._fail(
            e, f"the result of apply() has no member {e.name}", "hit, miss, action_run"
        )

    def _index(self, e: ast.Index) -> Type:
        e.index = _without_int_cast(e.index)
        base, index = self.check(e.base), self.value(e.index)
        if ANY in (base, index):
            return ANY
        if not isinstance(index, Bits | Integer | SerEnum):
            return self._fail(e.index, f"an index must be a number, not {index}")
        if isinstance(base, Tuple):
            return self._tuple_index(e, base)
        if not isinstance(base, Array):
            return self._fail(e, f"{base} cannot be indexed")
        if e.index.const is not None and not 0 <= e.index.const < base.size:
            return self._fail(e.index, f"index {e.index.const} is outside {base}")
        if isinstance(index, Integer):
            self.coerce(e.index, BIT32, "an index")
        if e.index.const is not None:
            e.const = _constant_part(e)
        return base.element

    def _tuple_index(self, e: ast.Index, base: Tuple) -> Type:
        at = self.c.constant_int(e.index, "a tuple's index")
        if at is None:
            return ANY
        if not 0 <= at < len(base.elements):
            return self._fail(e.index, f"index {at} is outside {base}")
        e.const = _constant_part(e)
        return base.elements[at]

    def _slice(self, e: ast.Slice) -> Type:
        base = self.value(e.base)
        bounds = self._slice_bounds(e)
        if base == ANY or bounds is None:
            return ANY
        hi, lo = bounds
        if isinstance(base, SerEnum):
            base = base.underlying
        if not isinstance(base, Bits | Integer):
            return self._fail(e, f"{base} has no slices")
        if hi < lo or lo < 0:
            return self._fail(e, f"slice [{hi}:{lo}] is not a range of bits: high bit first")
        if isinstance(base, Bits) and hi >= base.width:
            return self._fail(e, f"bit {hi} is outside {base}")
        if hi >= MAX_WIDTH:
            return self._fail(e, f"a slice can have {MAX_WIDTH} bits at most")
        if e.base.const is not None:
            e.const = ops.slice_bits(e.base.const, hi, lo)
        return Bits(hi - lo + 1)

    def _slice_bounds(self, e: ast.Slice) -> tuple[int, int] | None:
        for part in (e.hi, e.lo, e.width):
            if part is not None:
                self.check(part)
        lo = self.c.constant_int(e.lo, "a slice's bound", checked=True)
        if e.hi is not None:
            hi = self.c.constant_int(e.hi, "a slice's bound", checked=True)
            return None if hi is None or lo is None else (hi, lo)
        assert e.width is not None
        width = self.c.constant_int(e.width, "a slice's width", checked=True)
        return None if width is None or lo is None else (lo + width - 1, lo)

    # -- composed ------------------------------------------------------------------------------

    def _cast(self, e: ast.Cast) -> Type:
        target, source = self.c.types.value_type(e.ref), self.value(e.operand)
        if ANY in (target, source):
            return target
        if isinstance(source, ListLiteral | StructLiteral | DefaultLiteral):
            self.coerce(e.operand, target, "the value cast")
            return target
        e.operand = _without_int_cast(e.operand)
        e.through_int = e.operand.type != source
        if e.through_int:  # of any T and x
            return target if isinstance(target, Bits) else self._fail(e, _AT_RUN_TIME)
        if not cast_allowed(target, source, e.operand.const):
            return self._fail(e, f"{source} cannot be cast to {target}", _cast_hint(target, source))
        if e.operand.const is not None and not isinstance(e.operand.const, EnumValue):
            e.const = ops.cast(target, source, e.operand.const)
            if isinstance(source, Integer) and isinstance(target, Bits):
                wanted = ops.limits(Bits(target.width))[
                    1
                ]  # a negative number stands for its two's complement
                if e.operand.const > wanted:
                    what = f"{e.operand.const} does not fit {target}: it becomes {e.const}"
                    self.c.warn(e, "overflow", what)
        return target

    def _listexpr(self, e: ast.ListExpr) -> Type:
        dots = bool(e.elements) and isinstance(e.elements[-1], ast.Dots)
        elements = e.elements[:-1] if dots else e.elements
        for x in elements:
            if isinstance(x, ast.Dots):
                self.c.error(x, "... must be the last element of a list")
        return ListLiteral(tuple(self.value(x) for x in elements), dots)

    def _structexpr(self, e: ast.StructExpr) -> Type:
        names = [n for n, _ in e.fields]
        for name in {n for n in names if names.count(n) > 1}:
            self.c.error(e, f"field {name} is given twice")
        return StructLiteral(tuple((n, self.value(x)) for n, x in e.fields))

    def _call(self, e: ast.Call) -> Type:
        return self.c.calls.check(e)

    # -- only in keysets -----------------------------------------------------------------------

    def _only_in_keysets(self, e: ast.Expr) -> Type:
        return self._fail(e, "this is only allowed in a keyset (select, entries, value sets)")


_EXPRESSIONS: dict[type[ast.Expr], Callable[..., Type]] = by_class(
    ast.Expr,
    {
        ast.IntLit: ExpressionChecker._intlit,
        ast.BoolLit: ExpressionChecker._boollit,
        ast.StringLit: ExpressionChecker._stringlit,
        ast.Name: ExpressionChecker._name,
        ast.TypeExpr: ExpressionChecker._typeexpr,
        ast.Member: ExpressionChecker._member,
        ast.Index: ExpressionChecker._index,
        ast.Slice: ExpressionChecker._slice,
        ast.Unary: ExpressionChecker._unary,
        ast.Binary: ExpressionChecker._binary,
        ast.Ternary: ExpressionChecker._ternary,
        ast.Cast: ExpressionChecker._cast,
        ast.Call: ExpressionChecker._call,
        ast.ListExpr: ExpressionChecker._listexpr,
        ast.StructExpr: ExpressionChecker._structexpr,
        ast.InvalidHeader: ExpressionChecker._invalidheader,
        ast.Dots: ExpressionChecker._dots,
        (ast.Range, ast.Mask, ast.DefaultKey, ast.TupleKey): ExpressionChecker._only_in_keysets,
    },
)


_AT_RUN_TIME = "an int that depends on the packet can only be cast, assigned or an index"


def _without_int_cast(e: ast.Expr) -> ast.Expr:
    """Return the operand of (int) x, which need not be constant where the number is an index, or is
    cast again."""
    match e:
        case ast.Cast(ref=ast.BaseTypeRef(name="int", width=None), operand=operand, const=None):
            return operand
    return e


def _constant_part(e: ast.Member | ast.Index) -> Any:
    """Return the value of a member of a constant struct or tuple; None if it is not a literal."""
    whole, part = _literal(e.base), None
    match whole, e:
        case ast.StructExpr(fields=fields), ast.Member(name=name):
            part = dict(fields).get(name)
        case ast.ListExpr(elements=elements, type=Fields() as t), ast.Member(name=name):
            at = t.index(name)
            part = elements[at] if at is not None and at < len(elements) else None
        case ast.ListExpr(elements=elements), ast.Index(index=ast.Expr(const=int() as at)):
            part = elements[at] if at < len(elements) else None
    return None if part is None else part.const


def _literal(e: ast.Expr) -> ast.Expr | None:
    """Return the list or struct expression that a constant expression stands for."""
    match e:
        case ast.Name(decl=ast.ConstDecl(value=value)):
            return _literal(value)
        case ast.Cast(operand=operand):
            return _literal(operand)
        case ast.ListExpr() | ast.StructExpr():
            return e
    return None


def _cast_hint(target: Type, source: Type) -> str:
    if isinstance(target, Bits) and isinstance(source, Bits):
        step = Bits(target.width, source.signed)
        return f"change width and sign one at a time: ({target}) ({step}) ..."
    return ""
