"""Sets of values that keysets stand for, and whether one holds all of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir.types import Bits, SerEnum, Type
from gradplane.switch.syntax import ast


@dataclass(frozen=True, slots=True)
class Masked:
    """The numbers with `value` in the bits of `mask`, of `width` bits in all."""

    value: int
    mask: int
    width: int


@dataclass(frozen=True, slots=True)
class Between:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class One:
    """A value of any type."""

    value: object


@dataclass(frozen=True, slots=True)
class Any_:
    """All values."""


Known = Masked | Between | One | Any_
MAX_COMPARED = 512  # keysets of a table or select; those after it are not looked at


def known_sets(keyset: ast.Expr, types: Sequence[Type]) -> list[Known] | None:
    """What a checked keyset matches, a set for each key; None where it is not known here."""
    if isinstance(keyset, ast.DefaultKey):
        return [Any_() for _ in types]
    several = isinstance(keyset, ast.TupleKey | ast.ListExpr) and len(types) != 1
    elements = getattr(keyset, "elements", [keyset])
    parts = elements if several or isinstance(keyset, ast.TupleKey) else [keyset]
    found = [_known(e, t) for e, t in zip(parts, types, strict=False)]
    if len(parts) != len(types) or None in found:
        return None
    return [s for s in found if s is not None]


def _known(e: ast.Expr, t: Type) -> Known | None:
    number = t.underlying if isinstance(t, SerEnum) else t
    match e:
        case ast.DefaultKey():
            return Any_()
        case ast.Range(low=ast.Expr(const=int() as low), high=ast.Expr(const=int() as high)):
            return Between(low, high)
        case ast.Mask(value=ast.Expr(const=int() as v), mask=ast.Expr(const=int() as m)):
            if isinstance(number, Bits) and not number.signed:
                return Masked(v & m, m, number.width)
        case ast.Expr(const=value) if value is not None:
            return One(value)
    return None


def covers(one: Sequence[Known], other: Sequence[Known]) -> bool:
    """Whether all that `other` matches is matched by `one` too, key by key."""
    return all(map(_holds, one, other))


def _holds(a: Known, b: Known) -> bool:
    match a, b:
        case Any_(), _:
            return True
        case One(value=x), One(value=y):
            return x == y
        case One(value=x), Between(low=low, high=high):
            return low == high == x
        case Between(low=low, high=high), One(value=int() as y):
            return low <= y <= high
        case Between(), Between():
            return a.low <= b.low and b.high <= a.high
        case Between(low=low, high=high), Masked():
            return low <= b.value and b.value | ~b.mask & (1 << b.width) - 1 <= high
        case Masked(), One(value=int() as y):
            return y & a.mask == a.value
        case Masked(), Masked():
            return a.mask & b.mask == a.mask and b.value & a.mask == a.value
        case Masked(mask=mask), Between(low=low, high=high):
            same_below = (low ^ high).bit_length()  # bits that differ within the range
            return low <= high and not mask & (1 << same_below) - 1 and low & mask == a.value
        case Masked(mask=0), Any_():
            return True
    return False


def first_cover(earlier: Sequence[list[Known] | None], sets: list[Known] | None) -> int | None:
    """The first of the earlier keysets that leaves nothing to this one."""
    if sets is None or len(earlier) >= MAX_COMPARED:
        return None
    found = (i for i, e in enumerate(earlier) if e is not None and covers(e, sets))
    return next(found, None)
