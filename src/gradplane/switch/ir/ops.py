"""The operators: one row each, with its width rule and its meaning on Python ints.

A value of bit<W> or int<W> is an int in the type's range, bool a bool, varbit a (length, value)
pair. The interpreter takes a row's `make(left_type, right_type)`, the checker's constant folder
calls binary, unary and cast. `int` (arbitrary precision) is accepted everywhere and never wraps.
P4_16 1.2.5, sections 8.5 to 8.11.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from gradplane.switch.ir.types import BOOL, Bits, Bool, Enum, Error, NewType, SerEnum, Type, Varbit

Value = Any  # int, bool or (length, value)
Function1 = Callable[[Value], Value]
Function2 = Callable[[Value, Value], Value]


def wrap(t: Type) -> Function1:
    """Return the function that brings any int into the range of `t`, modulo 2^W: the one mask.

    int (arbitrary precision) and bool pass unchanged.
    """
    if not isinstance(t, Bits):
        return _same
    mask = (1 << t.width) - 1
    if not t.signed or t.width == 0:
        return lambda v: v & mask
    half = 1 << (t.width - 1)
    return lambda v: ((v + half) & mask) - half


def limits(t: Bits) -> tuple[int, int]:
    """Return the least and greatest value of a type."""
    if t.signed and t.width:
        return -(1 << (t.width - 1)), (1 << (t.width - 1)) - 1
    return 0, (1 << t.width) - 1


class BinaryOp(NamedTuple):
    """A binary operator; `result` names the rule for the result's type.

    "left": the left operand's; "bool": bool; "sum": bit<left + right>.
    """

    name: str
    result: str
    make: Callable[[Type, Type], Function2]


class UnaryOp(NamedTuple):
    name: str
    make: Callable[[Type], Function1]


# -- how a row's meaning is finished ------------------------------------------------------------


def _same(v: Value) -> Value:
    return v


def _wrapped(raw: Function2) -> Callable[[Type, Type], Function2]:
    def make(left: Type, right: Type) -> Function2:
        if not isinstance(left, Bits):
            return raw
        if left.signed:
            into = wrap(left)
            return lambda a, b: into(raw(a, b))
        mask = (1 << left.width) - 1
        return lambda a, b: raw(a, b) & mask

    return make


def _clamped(raw: Function2) -> Callable[[Type, Type], Function2]:
    def make(left: Type, right: Type) -> Function2:
        if not isinstance(left, Bits):
            return raw
        low, high = limits(left)
        return lambda a, b: max(low, min(high, raw(a, b)))

    return make


def _exact(raw: Function2) -> Callable[[Type, Type], Function2]:
    return lambda left, right: raw


def _shift_left(left: Type, right: Type) -> Function2:
    if not isinstance(left, Bits):
        return operator.lshift
    into, width = wrap(left), left.width
    return lambda a, b: into(a << b) if b < width else 0


def _shift_right(left: Type, right: Type) -> Function2:
    if not isinstance(left, Bits):
        return operator.rshift
    width = left.width
    return lambda a, b: a >> (b if b < width else width)


def _concat(left: Type, right: Type) -> Function2:
    assert isinstance(left, Bits) and isinstance(right, Bits), (left, right)
    shift, mask = right.width, (1 << right.width) - 1
    into = wrap(Bits(left.width + right.width, left.signed))
    return lambda a, b: into(a << shift | b & mask)


def _divide(a: int, b: int) -> int:
    """Divide, truncating toward zero; division by zero gives 0."""
    if b == 0:
        return 0
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def _remainder(a: int, b: int) -> int:
    return a - b * _divide(a, b) if b else 0


# -- the table ----------------------------------------------------------------------------------

BINARY: dict[str, BinaryOp] = {
    row.name: row
    for row in (
        BinaryOp("+", "left", _wrapped(operator.add)),
        BinaryOp("-", "left", _wrapped(operator.sub)),
        BinaryOp("*", "left", _wrapped(operator.mul)),
        BinaryOp("/", "left", _wrapped(_divide)),
        BinaryOp("%", "left", _wrapped(_remainder)),
        BinaryOp("|+|", "left", _clamped(operator.add)),
        BinaryOp("|-|", "left", _clamped(operator.sub)),
        BinaryOp("&", "left", _exact(operator.and_)),
        BinaryOp("|", "left", _exact(operator.or_)),
        BinaryOp("^", "left", _exact(operator.xor)),
        BinaryOp("<<", "left", _shift_left),
        BinaryOp(">>", "left", _shift_right),
        BinaryOp("==", "bool", _exact(operator.eq)),
        BinaryOp("!=", "bool", _exact(operator.ne)),
        BinaryOp("<", "bool", _exact(operator.lt)),
        BinaryOp("<=", "bool", _exact(operator.le)),
        BinaryOp(">", "bool", _exact(operator.gt)),
        BinaryOp(">=", "bool", _exact(operator.ge)),
        BinaryOp("&&", "bool", _exact(lambda a, b: a and b)),
        BinaryOp("||", "bool", _exact(lambda a, b: a or b)),
        BinaryOp("++", "sum", _concat),
    )
}


def _wrapped1(raw: Function1) -> Callable[[Type], Function1]:
    def make(t: Type) -> Function1:
        into = wrap(t)
        return lambda a: into(raw(a))

    return make


UNARY: dict[str, UnaryOp] = {
    row.name: row
    for row in (
        UnaryOp("-", _wrapped1(operator.neg)),
        UnaryOp("~", _wrapped1(operator.invert)),
        UnaryOp("+", _wrapped1(operator.pos)),
        UnaryOp("!", lambda t: operator.not_),
    )
}


# -- by name ------------------------------------------------------------------------------------


def binary(op: str, left_type: Type, right_type: Type, a: Value, b: Value) -> Value:
    """Evaluate `a op b`; the amount of a shift must not be negative."""
    result: Value = BINARY[op].make(_plain(left_type), _plain(right_type))(a, b)
    return result


def unary(op: str, t: Type, a: Value) -> Value:
    """Evaluate `op a`."""
    result: Value = UNARY[op].make(_plain(t))(a)
    return result


def cast(to_type: Type, from_type: Type, a: Value) -> Value:
    """Evaluate `(to_type) a`."""
    result: Value = caster(_plain(to_type), _plain(from_type))(a)
    return result


def caster(to_type: Type, from_type: Type) -> Function1:
    """Return the function that casts between any Bits (and int), and bit<1> and bool."""
    if to_type == from_type:
        return _same
    if to_type == BOOL:
        return bool
    if isinstance(from_type, Bool):
        return int
    return wrap(to_type)


def result_type(op: str, left: Type, right: Type) -> Type:
    """Return the type of `left op right`, by the row's width rule."""
    match BINARY[op].result:
        case "bool":
            return BOOL
        case "sum":
            assert isinstance(left, Bits) and isinstance(right, Bits), (left, right)
            return Bits(left.width + right.width, left.signed)
    return left


def slice_bits(a: int, hi: int, lo: int) -> int:
    """Return a[hi:lo], unsigned."""
    return (a >> lo) & ((1 << (hi - lo + 1)) - 1)


def with_slice(a: int, hi: int, lo: int, value: int) -> int:
    """Return `a` with a[hi:lo] replaced; for a signed value the result may need wrap()."""
    mask = ((1 << (hi - lo + 1)) - 1) << lo
    return (a & ~mask) | (value << lo & mask)


def _plain(t: Type) -> Type:
    """Return a declared type's representation."""
    match t:
        case SerEnum(underlying=underlying) | NewType(underlying=underlying):
            return _plain(underlying)
        case Enum() | Error():
            return Bits(32)
    return t


def zero(t: Type) -> Value:
    """Return the default value of a scalar type: 0, false, empty varbit, empty string."""
    match t:
        case Bool():
            return False
        case Varbit():
            return (0, 0)
        case Bits():
            return 0
    return ""
