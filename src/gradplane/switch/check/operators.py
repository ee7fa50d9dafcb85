"""Operators: their operand and result types, and their value on constants (sections 8.5 to 8.9);
warnings about operations whose result does not depend on their operands.
"""

from __future__ import annotations

from abc import abstractmethod

from gradplane.switch.check.checker_types import (
    ANY,
    DefaultLiteral,
    ExternType,
    ListLiteral,
    StructLiteral,
    TypeVar,
)
from gradplane.switch.check.context import Context
from gradplane.switch.check.conversions import coerce
from gradplane.switch.check.expression_text import written_alike
from gradplane.switch.check.records import MAX_BITS
from gradplane.switch.ir import ops
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import (
    BOOL,
    STRING,
    Array,
    Bits,
    Fields,
    Integer,
    List,
    SerEnum,
    String,
    Tuple,
    Type,
)
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

_ORDER = {"<", "<=", ">", ">="}
_BOOLEAN = _ORDER | {"==", "!=", "&&", "||"}
_BITWISE = {"&", "|", "^"}
_SATURATING = {"|+|", "|-|"}


class OperatorChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    @abstractmethod
    def value(self, e: ast.Expr) -> Type:
        """Check an expression that must be a value."""

    def _fail(self, node: ast.Node, message: str, hint: str = "") -> Type:
        self.c.error(node, message, hint)
        return ANY

    def _unary(self, e: ast.Unary) -> Type:
        t = self.value(e.operand)
        if t == ANY:
            return ANY
        if isinstance(t, SerEnum):
            t = t.underlying
        self._known(e.operand)
        fits = t == BOOL if e.op == "!" else isinstance(t, Bits | Integer)
        if not fits or (e.op == "~" and isinstance(t, Integer)):
            return self._fail(e, f"{e.op} cannot be applied to {t}")
        if e.operand.const is not None:
            e.const = ops.unary(e.op, t, e.operand.const)
        return t

    def _binary(self, e: ast.Binary) -> Type:
        left, right = self.value(e.left), self.value(e.right)
        if ANY in (left, right):
            return BOOL if e.op in _BOOLEAN else ANY
        if e.op in ("&&", "||"):
            return self._logical(e, left, right)
        self._known(e.left)
        self._known(e.right)
        if e.op in ("==", "!="):
            return self._equality(e)
        if e.op in ("<<", ">>"):
            return self._shift(e, number_of(left), number_of(right))
        if e.op == "++":
            return self._concat(e, number_of(left), number_of(right))
        return self._arithmetic(e)

    def _known(self, operand: ast.Expr) -> None:
        """Report an int that depends on the packet: (int) x has no width to compute with."""
        cast = isinstance(operand.type, Integer) and isinstance(operand, ast.Cast)
        if cast and operand.const is None and not self.c.compile_time(operand):
            what = "an int that depends on the packet cannot be computed with"
            self.c.error(operand, what, "cast it: (bit<32>) ...")

    def _logical(self, e: ast.Binary, left: Type, right: Type) -> Type:
        for operand, t in ((e.left, left), (e.right, right)):
            if t != BOOL:
                hint = f"{e.op[0]} is for numbers, and x != 0 is a bool"
                number = isinstance(t, Bits | Integer | SerEnum)
                self.c.error(operand, f"{e.op} needs bool, not {t}", hint if number else "")
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            e.const = ops.binary(e.op, BOOL, BOOL, a, b)
        elif a is not None and a == (e.op == "||"):
            e.const = a
        return BOOL

    def _equality(self, e: ast.Binary) -> Type:
        t = self.common(e.left, e.right)
        if t is None or isinstance(t, ExternType | String | TypeVar):
            self.c.error(e, f"{e.left.type} and {e.right.type} cannot be compared")
            return BOOL
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            e.const = (a == b) == (e.op == "==")
        warn_comparison(self.c, e, t)
        return BOOL

    def _arithmetic(self, e: ast.Binary) -> Type:
        negative = any(isinstance(x.const, int) and x.const < 0 for x in (e.left, e.right))
        t = self.common(e.left, e.right)
        number = number_of(t) if t is not None else None
        if not isinstance(number, Bits | Integer):
            return self._fail(
                e, f"{e.op} cannot be applied to {e.left.type} and {e.right.type}", _same_width(e)
            )
        if isinstance(number, Integer) and (e.op in _SATURATING or negative and e.op in _BITWISE):
            return self._fail(e, f"{e.op} cannot be applied to int", "give a width: 8w1")
        if (
            isinstance(number, Integer) and e.op in _BITWISE
        ):  # p4c accepts it, the specification does not
            self.c.warn(e, "mismatch", f"{e.op} on int is not in P4_16: give a width, as in 8w1")
        if e.op in ("/", "%") and not self._divisor(e, number, negative):
            return ANY
        a, b = e.left.const, e.right.const
        if a is not None and b is not None:
            if e.op == "*" and a.bit_length() + b.bit_length() > MAX_BITS:
                return self._fail(e, f"the product has more than {MAX_BITS} bits")
            e.const = ops.binary(e.op, number, number, a, b)
        if e.op in _ORDER:
            warn_comparison(self.c, e, number)
        return BOOL if e.op in _ORDER else number

    def _divisor(self, e: ast.Binary, t: Type, negative: bool) -> bool:
        if e.right.const == 0:
            self.c.error(e.right, "division by zero")
            return False
        if negative or (isinstance(t, Bits) and t.signed):
            self.c.error(e, f"{e.op} is not defined for negative or signed numbers")
            return False
        return True

    def _shift(self, e: ast.Binary, left: Type, right: Type) -> Type:
        if not isinstance(left, Bits | Integer):
            return self._fail(e, f"{e.op} cannot be applied to {left}")
        amount = e.right.const
        signed = isinstance(right, Bits) and right.signed
        if not isinstance(right, Bits | Integer) or (signed and amount is None):
            return self._fail(e.right, f"the amount of a shift must be unsigned, not {right}")
        if amount is not None and amount < 0:
            return self._fail(e.right, f"the amount of a shift cannot be negative ({amount})")
        if isinstance(left, Integer) and not self.c.compile_time(e.right):
            return self._fail(e, "an int without width can only be shifted by a constant")
        if isinstance(left, Integer) and amount is not None and amount > MAX_BITS:
            return self._fail(e.right, f"the amount of a shift is too large ({amount})")
        warn_shift(self.c, e, left)
        if e.left.const is not None and amount is not None:
            e.const = ops.binary(e.op, left, right, e.left.const, amount)
        return left

    def _concat(self, e: ast.Binary, left: Type, right: Type) -> Type:
        if left == right == STRING:
            return self._joined(e)
        if isinstance(left, Integer) or isinstance(right, Integer):
            return self._fail(e, "++ needs operands of known width", "write 8w1 instead of 1")
        if not isinstance(left, Bits) or not isinstance(right, Bits):
            return self._fail(e, f"++ cannot be applied to {left} and {right}")
        if e.left.const is not None and e.right.const is not None:
            e.const = ops.binary("++", left, right, e.left.const, e.right.const)
        return Bits(left.width + right.width, left.signed)

    def _joined(self, e: ast.Binary) -> Type:
        """Concatenate strings, which are known at compile time."""
        if isinstance(e.left.const, str) and isinstance(e.right.const, str):
            if len(e.left.const) + len(e.right.const) > MAX_BITS:
                return self._fail(e, f"the string has more than {MAX_BITS} characters")
            e.const = e.left.const + e.right.const
        return STRING

    def _ternary(self, e: ast.Ternary) -> Type:
        cond = self.value(e.cond)
        then, other = self.value(e.then), self.value(e.other)
        if cond not in (BOOL, ANY):
            self.c.error(e.cond, f"the condition of ?: must be bool, not {cond}")
        if ANY in (then, other):
            return ANY
        literals = (ListLiteral, StructLiteral, DefaultLiteral)
        if isinstance(then, literals) and isinstance(other, literals):
            return then  # the context determines the type of both
        t = self.common(e.then, e.other)
        if t is None:
            return self._fail(e, f"the branches of ?: differ: {then} and {other}")
        if isinstance(t, Integer) and not self.c.compile_time(e.cond):
            return self._fail(e, "one branch of ?: needs a width", "write 8w1 instead of 1")
        if e.cond.const is not None:
            e.const = (e.then if e.cond.const else e.other).const
        return t

    def common(self, a: ast.Expr, b: ast.Expr) -> Type | None:
        """Return the common type of both operands after implicit conversion, or None."""
        assert a.type is not None and b.type is not None
        if isinstance(a, ast.ListExpr) and isinstance(b, ast.ListExpr):
            return self._common_tuple(a, b)
        if a.type == b.type:
            return None if isinstance(a.type, DefaultLiteral | StructLiteral) else a.type
        for one, other in ((a, b), (b, a)):
            assert one.type is not None and other.type is not None
            if isinstance(one.type, Integer) and isinstance(number_of(other.type), Bits):
                target = number_of(other.type)
                coerce(self.c, one, target, "an operand")
                return target
            if isinstance(one.type, SerEnum) and one.type.underlying == number_of(other.type):
                return one.type.underlying
            if isinstance(one, ast.Dots):
                return None  # `...` is only a default value in an initializer
            if isinstance(one.type, ListLiteral | StructLiteral | DefaultLiteral):
                if isinstance(other.type, Fields | Tuple | List | Array):
                    return other.type if coerce(self.c, one, other.type, "an operand") else ANY
                return None
        return None

    def _common_tuple(self, a: ast.ListExpr, b: ast.ListExpr) -> Type | None:
        """Return the common type of two untyped lists, pair of elements by pair."""
        if not (isinstance(a.type, ListLiteral) and isinstance(b.type, ListLiteral)):
            return a.type if a.type == b.type else None
        if len(a.elements) != len(b.elements) or a.type.dots or b.type.dots:
            return None
        pairs = zip(a.elements, b.elements, strict=True)
        types = [self._sized(self.common(x, y), x, y) for x, y in pairs]
        t = Tuple(tuple(t for t in types if t is not None))
        if len(t.elements) != len(types):
            return None
        return t if coerce(self.c, a, t, "an operand") & coerce(self.c, b, t, "an operand") else ANY

    @staticmethod
    def _sized(t: Type | None, *operands: ast.Expr) -> Type | None:
        """Return the type itself; for two ints, one that holds both."""
        if not isinstance(t, Integer):
            return t
        widths = [e.const.bit_length() for e in operands if isinstance(e.const, int)]
        return Bits(max(widths, default=0) + 1, signed=True)


def number_of(t: Type) -> Type:
    """Return the number type of a serializable enum."""
    return t.underlying if isinstance(t, SerEnum) else t


def _same_width(e: ast.Binary) -> str:
    if isinstance(e.left.type, Bits) and isinstance(e.right.type, Bits):
        return f"both operands need one type: cast one, as in ({e.left.type}) ..."
    return ""


# -- results that are always the same ---------------------------------------------------------


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_SAME_SIDES = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False}


def warn_comparison(c: Context, e: ast.Binary, t: Type) -> None:
    """Warn of a comparison of values of type t that is always true or always false."""
    outcome = _outcome(e, t)
    if outcome is not None:
        c.warn(e, "always", f"this is always {str(outcome).lower()}")


def _outcome(e: ast.Binary, t: Type) -> bool | None:
    if e.left.const is not None and e.right.const is not None:
        return None
    if _pure(e.left) and written_alike(e.left, e.right):
        return _SAME_SIDES[e.op]
    if not isinstance(t, Bits) or e.op not in _MIRRORED:
        return None
    low, high = limits(t)
    if isinstance(e.right, ast.IntLit):
        return _against(e.op, e.right.const, low, high)
    if isinstance(e.left, ast.IntLit):
        return _against(_MIRRORED[e.op], e.left.const, low, high)
    return None


def _against(op: str, value: int, low: int, high: int) -> bool | None:
    """Return the value of `x op value` if it is the same for every x from low to high."""
    match op:
        case "<" if value <= low:
            return False
        case ">=" if value <= low:
            return True
        case ">" if value >= high:
            return False
        case "<=" if value >= high:
            return True
    return None


def _pure(e: ast.Expr) -> bool:
    return not any(isinstance(node, ast.Call) for node in walk(e))


def warn_shift(c: Context, e: ast.Binary, t: Type) -> None:
    """Warn of a shift by at least as many bits as the operand has."""
    amount = e.right.const
    if isinstance(t, Bits) and isinstance(amount, int) and amount >= t.width > 0:
        c.warn(e, "overflow", f"a shift by {amount} leaves none of the {t.width} bits")
