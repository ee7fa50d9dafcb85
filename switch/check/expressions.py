"""Types and compile-time values of expressions (specification, chapter 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradplane.switch.check.convert import cast_allowed, coerce
from gradplane.switch.check.kinds import (
    ANY,
    ActionRun,
    ApplyResult,
    DefaultLiteral,
    ListLiteral,
    SetType,
    Signature,
    StructLiteral,
    TableType,
    TypeName,
)
from gradplane.switch.check.scope import TypeParam, did_you_mean
from gradplane.switch.ir import ops
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    INTEGER,
    STRING,
    VOID,
    Bits,
    Enum,
    Error,
    Fields,
    Integer,
    List,
    SerEnum,
    Stack,
    Tuple,
    Type,
)
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker


@dataclass(frozen=True, slots=True)
class EnumValue:
    """The compile-time value of an enum's or error's member."""

    type: Type
    name: str


_ARITHMETIC = {"+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"}
_ORDER = {"<", "<=", ">", ">="}
_STACK_MEMBERS = {"next", "last", "lastIndex", "size"}
BIT32 = Bits(32)


class ExpressionChecker:
    def __init__(self, checker: Checker) -> None:
        self.c = checker

    # -- entry points --------------------------------------------------------------------------

    def check(self, e: ast.Expr) -> Type:
        """Sets and returns the type of `e` (its own, before any context), and its constant."""
        method = getattr(self, f"_{type(e).__name__.lower()}")
        e.type = method(e)
        assert e.type is not None
        return e.type

    def check_as(self, e: ast.Expr, target: Type, what: str) -> bool:
        """Checks `e` and converts it implicitly to `target`; says so where it cannot."""
        self.check(e)
        return self.coerce(e, target, what)

    def coerce(self, e: ast.Expr, target: Type, what: str) -> bool:
        return coerce(self.c, e, target, what)

    def value(self, e: ast.Expr) -> Type:
        """Checks an expression that must be a value (not a type, table, action, ...)."""
        t = self.check(e)
        if isinstance(t, TypeName | TableType | Signature | SetType | ApplyResult):
            return self._fail(e, f"{describe(e)} is a {t}, not a value")
        if t == VOID:
            return self._fail(e, "this call returns no value")
        return t

    def _fail(self, node: ast.Node, message: str, hint: str = "") -> Type:
        self.c.error(node, message, hint)
        return ANY

    # -- leaves --------------------------------------------------------------------------------

    def _intlit(self, e: ast.IntLit) -> Type:
        e.const = e.value
        if e.width is None:
            return INTEGER
        t = Bits(e.width, e.signed)
        if e.width < 1:
            return self._fail(e, f"a literal needs a positive width, not {e.width}")
        low, high = ops.limits(t)
        if not low <= e.value <= high:
            self.c.warn(e, f"{e.value} does not fit {t}: its low {e.width} bits are taken")
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
        return base.fields[index].type

    def _stack_member(self, e: ast.Member, base: Stack) -> Type:
        if e.name not in _STACK_MEMBERS:
            hint = "a stack has next, last, lastIndex, size, push_front and pop_front"
            return self._fail(e, f"{base} has no member {e.name}", hint)
        if e.name == "size":
            e.const = base.size
            return BIT32
        if self.c.context != "parser" and e.name in ("next", "last"):
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
        base, index = self.check(e.base), self.value(e.index)
        if ANY in (base, index):
            return ANY
        if not isinstance(index, Bits | Integer | SerEnum):
            return self._fail(e.index, f"an index must be a number, not {index}")
        if isinstance(base, Tuple):
            return self._tuple_index(e, base)
        if not isinstance(base, Stack):
            return self._fail(e, f"{base} cannot be indexed")
        if e.index.const is not None and not 0 <= e.index.const < base.size:
            return self._fail(e.index, f"index {e.index.const} is outside {base}")
        if isinstance(index, Integer):
            self.coerce(e.index, BIT32, "an index")
        return base.element

    def _tuple_index(self, e: ast.Index, base: Tuple) -> Type:
        at = self.c.constant_int(e.index, "a tuple's index")
        if at is None:
            return ANY
        if not 0 <= at < len(base.elements):
            return self._fail(e.index, f"index {at} is outside {base}")
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

    # -- operators -----------------------------------------------------------------------------

    def _unary(self, e: ast.Unary) -> Type:
        t = self.value(e.operand)
        if t == ANY:
            return ANY
        if isinstance(t, SerEnum):
            t = t.underlying
        fits = t == BOOL if e.op == "!" else isinstance(t, Bits | Integer)
        if not fits or (e.op == "~" and isinstance(t, Integer)):
            return self._fail(e, f"{e.op} cannot be applied to {t}")
        if e.operand.const is not None:
            e.const = ops.unary(e.op, t, e.operand.const)
        return t

    def _binary(self, e: ast.Binary) -> Type:
        left, right = self.value(e.left), self.value(e.right)
        if ANY in (left, right):
            return BOOL if e.op in _ORDER | {"==", "!=", "&&", "||"} else ANY
        if e.op in ("&&", "||"):
            return self._logical(e, left, right)
        if e.op in ("==", "!="):
            return self._equality(e)
        if e.op in ("<<", ">>"):
            return self._shift(e, _number(left), _number(right))
        if e.op == "++":
            return self._concat(e, _number(left), _number(right))
        return self._arithmetic(e)

    def _logical(self, e: ast.Binary, left: Type, right: Type) -> Type:
        for operand, t in ((e.left, left), (e.right, right)):
            if t != BOOL:
                self.c.error(operand, f"{e.op} needs bool, not {t}")
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            e.const = ops.binary(e.op, BOOL, BOOL, a, b)
        elif a is not None and a == (e.op == "||"):
            e.const = a
        return BOOL

    def _equality(self, e: ast.Binary) -> Type:
        t = self._common(e.left, e.right)
        if t is None:
            self.c.error(e, f"{e.left.type} and {e.right.type} cannot be compared")
            return BOOL
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            e.const = (a == b) == (e.op == "==")
        return BOOL

    def _arithmetic(self, e: ast.Binary) -> Type:
        t = self._common(e.left, e.right)
        number = _number(t) if t is not None else None
        if not isinstance(number, Bits | Integer):
            return self._fail(
                e, f"{e.op} cannot be applied to {e.left.type} and {e.right.type}", _same_width(e)
            )
        if isinstance(number, Integer) and e.op in ("&", "|", "^", "|+|", "|-|"):
            return self._fail(e, f"{e.op} cannot be applied to int", "give a width: 8w1")
        if e.op in ("/", "%") and not self._divisor(e, number):
            return ANY
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            e.const = ops.binary(e.op, number, number, a, b)
        return BOOL if e.op in _ORDER else number

    def _divisor(self, e: ast.Binary, t: Type) -> bool:
        if e.right.const == 0:
            self.c.error(e.right, "division by zero")
            return False
        negative = any(isinstance(x.const, int) and x.const < 0 for x in (e.left, e.right))
        if negative or (isinstance(t, Bits) and t.signed):
            self.c.error(e, f"{e.op} is not defined for negative or signed numbers")
            return False
        return True

    def _shift(self, e: ast.Binary, left: Type, right: Type) -> Type:
        if not isinstance(left, Bits | Integer):
            return self._fail(e, f"{e.op} cannot be applied to {left}")
        amount = e.right.const
        if not isinstance(right, Bits | Integer) or (isinstance(right, Bits) and right.signed):
            return self._fail(e.right, f"the amount of a shift must be unsigned, not {right}")
        if amount is not None and amount < 0:
            return self._fail(e.right, f"the amount of a shift cannot be negative ({amount})")
        if isinstance(left, Integer) and amount is None:
            return self._fail(e, "an int without width can only be shifted by a constant")
        if isinstance(left, Integer) and amount is not None and amount > 65536:
            return self._fail(e.right, f"the amount of a shift is too large ({amount})")
        if e.left.const is not None and amount is not None:
            e.const = ops.binary(e.op, left, right, e.left.const, amount)
        return left

    def _concat(self, e: ast.Binary, left: Type, right: Type) -> Type:
        if isinstance(left, Integer) or isinstance(right, Integer):
            return self._fail(e, "++ needs operands of known width", "write 8w1 instead of 1")
        if not isinstance(left, Bits) or not isinstance(right, Bits):
            return self._fail(e, f"++ cannot be applied to {left} and {right}")
        if e.left.const is not None and e.right.const is not None:
            e.const = ops.binary("++", left, right, e.left.const, e.right.const)
        return Bits(left.width + right.width, left.signed)

    def _ternary(self, e: ast.Ternary) -> Type:
        cond = self.value(e.cond)
        then, other = self.value(e.then), self.value(e.other)
        if cond not in (BOOL, ANY):
            self.c.error(e.cond, f"the condition of ?: must be bool, not {cond}")
        if ANY in (then, other):
            return ANY
        t = self._common(e.then, e.other)
        if t is None:
            return self._fail(e, f"the branches of ?: differ: {then} and {other}")
        if isinstance(t, Integer) and e.cond.const is None:
            return self._fail(e, "one branch of ?: needs a width", "write 8w1 instead of 1")
        if e.cond.const is not None:
            e.const = (e.then if e.cond.const else e.other).const
        return t

    def _common(self, a: ast.Expr, b: ast.Expr) -> Type | None:
        """The type of both operands after implicit conversion, None if they have none in common."""
        assert a.type is not None and b.type is not None
        if a.type == b.type:
            return None if isinstance(a.type, DefaultLiteral) else a.type
        for one, other in ((a, b), (b, a)):
            assert one.type is not None and other.type is not None
            if isinstance(one.type, Integer) and isinstance(_number(other.type), Bits):
                target = _number(other.type)
                self.coerce(one, target, "an operand")
                return target
            if isinstance(one.type, SerEnum) and one.type.underlying == _number(other.type):
                return one.type.underlying
            if isinstance(one.type, ListLiteral | StructLiteral | DefaultLiteral):
                if isinstance(other.type, Fields | Tuple | List | Stack):
                    return other.type if self.coerce(one, other.type, "an operand") else ANY
                return None
        return None

    # -- composed ------------------------------------------------------------------------------

    def _cast(self, e: ast.Cast) -> Type:
        target, source = self.c.types.value_type(e.ref), self.value(e.operand)
        if ANY in (target, source):
            return target
        if isinstance(source, ListLiteral | StructLiteral | DefaultLiteral):
            self.coerce(e.operand, target, "the value cast")
            return target
        if not cast_allowed(target, source, e.operand.const):
            return self._fail(e, f"{source} cannot be cast to {target}", _cast_hint(target, source))
        if e.operand.const is not None and not isinstance(e.operand.const, EnumValue):
            e.const = ops.cast(target, source, e.operand.const)
        return target

    def _listexpr(self, e: ast.ListExpr) -> Type:
        dots = bool(e.elements) and isinstance(e.elements[-1], ast.Dots)
        elements = e.elements[:-1] if dots else e.elements
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

    _range = _mask = _defaultkey = _tuplekey = _only_in_keysets

    # -- l-values ------------------------------------------------------------------------------

    def is_lvalue(self, e: ast.Expr) -> bool:
        match e:
            case ast.Name(decl=ast.VarDecl()):
                return True
            case ast.Name(decl=ast.Param(direction=direction)):
                return direction in ("out", "inout")
            case ast.Member(base=base, name=name):
                if isinstance(base.type, Stack):
                    return name in ("next", "last") and self.is_lvalue(base)
                return isinstance(base.type, Fields) and self.is_lvalue(base)
            case ast.Index(base=base):
                return self.is_lvalue(base)
            case ast.Slice(base=base):
                return self.is_lvalue(base)
        return False

    def require_lvalue(self, e: ast.Expr, what: str) -> bool:
        if e.type == ANY or self.is_lvalue(e):
            return True
        root = _root(e)
        reason = ""
        if isinstance(root, ast.Name):
            decl: Any = root.decl
            if isinstance(decl, ast.ConstDecl):
                reason = f"{decl.name} is a constant"
            elif isinstance(decl, ast.Param):
                direction = decl.direction or "directionless"
                reason = f"{decl.name} is a parameter of direction {direction}"
        self.c.error(e, f"{what} must be something that can be assigned to", reason)
        return False


def _number(t: Type) -> Type:
    """The number type behind a serializable enum."""
    return t.underlying if isinstance(t, SerEnum) else t


def _root(e: ast.Expr) -> ast.Expr:
    while isinstance(e, ast.Member | ast.Index | ast.Slice):
        e = e.base
    return e


def _same_width(e: ast.Binary) -> str:
    if isinstance(e.left.type, Bits) and isinstance(e.right.type, Bits):
        return f"both operands need one type: cast one, as in ({e.left.type}) ..."
    return ""


def _cast_hint(target: Type, source: Type) -> str:
    if isinstance(target, Bits) and isinstance(source, Bits):
        step = Bits(target.width, source.signed)
        return f"change width and sign one at a time: ({target}) ({step}) ..."
    return ""


def describe(e: ast.Expr) -> str:
    """An expression as its user wrote it, for messages and for names of match keys."""
    match e:
        case ast.Name(name=name, dot=dot):
            return ("." if dot else "") + name
        case ast.Member(base=base, name=name):
            return f"{describe(base)}.{name}"
        case ast.Index(base=base, index=index):
            return f"{describe(base)}[{describe(index)}]"
        case ast.Slice(base=base, hi=ast.Expr() as hi, lo=lo):
            return f"{describe(base)}[{describe(hi)}:{describe(lo)}]"
        case ast.IntLit(value=value):
            return str(value)
        case ast.Call(callee=callee, args=[]):
            return f"{describe(callee)}()"
        case ast.TypeExpr(ref=ref):
            return str(ref.type)
    return "this expression"
