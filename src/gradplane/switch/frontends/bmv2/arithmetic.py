"""Numbers of the IR: constants, casts between widths, and operators on numbers of any two types.

BMv2's numbers have no width; `Range` says which values an operator's result can have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Type


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a number."""

    low: int
    high: int

    @property
    def type(self) -> Bits:
        """The narrowest type with room for it; unsigned if it can be."""
        if self.low >= 0:
            return Bits(max(1, self.high.bit_length()))
        return Bits(max(self.high.bit_length(), (~self.low).bit_length()) + 1, True)

    def joined(self, other: Range) -> Range:
        """Return the range of both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def range_of(t: Type) -> Range:
    """Return the range of a type."""
    if not isinstance(t, Bits):
        return Range(0, 1)
    if t.signed:
        return Range(-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1)
    return Range(0, (1 << t.width) - 1)


def range_of_result(op: str, a: Range, b: Range, value: Item) -> Range:
    """Return the range of an operator's result. A single operand is b.

    value: the expression, for errors. Raises CompileError for an operator that is not known, and
    for a shift that has no bound."""
    if op not in _RANGES:
        raise value.refuse(f"operator {op!r} is not known")
    return _RANGES[op](a, b, value)


def _sum(a: Range, b: Range, value: Item) -> Range:
    return Range(a.low + b.low, a.high + b.high)


def _difference(a: Range, b: Range, value: Item) -> Range:
    return Range(a.low - b.high, a.high - b.low)


def _product(a: Range, b: Range, value: Item) -> Range:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners))


def _left_shift(a: Range, b: Range, value: Item) -> Range:
    if b.high > MAX_WIDTH:
        text = f"a shift by up to {b.high} bits, without a mask around it"
        raise value.refuse(f"{text}: {MAX_WIDTH} is the most")
    shifts = (max(b.low, 0), b.high)
    corners = [x << n for x in (a.low, a.high) for n in shifts]
    return Range(min(corners), max(corners))


def _right_shift(a: Range, b: Range, value: Item) -> Range:
    most, least = (min(max(n, 0), MAX_WIDTH) for n in (b.high, b.low))
    corners = [x >> n for x in (a.low, a.high) for n in (least, most)]
    return Range(min(corners), max(corners))


def _quotient(a: Range, b: Range, value: Item) -> Range:
    most = max(abs(a.low), abs(a.high))
    negative = a.low < 0 or b.low < 0
    return Range(-most if negative else 0, most)


def _rest(a: Range, b: Range, value: Item) -> Range:
    most = max(abs(a.low), abs(a.high), abs(b.low), abs(b.high))
    return Range(-most if a.low < 0 or b.low < 0 else 0, most)


def _conjunction(a: Range, b: Range, value: Item) -> Range:
    highs = [r.high for r in (a, b) if r.low >= 0]
    if highs:
        return Range(0, min(highs))
    return range_of(Bits(max(a.type.width, b.type.width), True))


def _bitwise(a: Range, b: Range, value: Item) -> Range:
    if a.low >= 0 and b.low >= 0:
        return Range(0, (1 << max(a.high, b.high).bit_length()) - 1)
    return range_of(a.joined(b).type)


def _complement(a: Range, b: Range, value: Item) -> Range:
    return Range(~b.high, ~b.low)


def _choice(a: Range, b: Range, value: Item) -> Range:
    return a.joined(b)


_RANGES: dict[str, Callable[[Range, Range, Item], Range]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "<<": _left_shift,
    ">>": _right_shift,
    "/": _quotient,
    "%": _rest,
    "&": _conjunction,
    "|": _bitwise,
    "^": _bitwise,
    "~": _complement,
    "?": _choice,
}


def constant(t: Type, value: int) -> ir.Const:
    """Return a number of a type, modulo its width."""
    assert isinstance(t, Bits), t
    value &= (1 << t.width) - 1
    if t.signed and value >> (t.width - 1):
        value -= 1 << t.width
    return ir.Const(t, value)


def cast(e: ir.Expr, t: Type) -> ir.Expr:
    """Return a number in another type, modulo its width."""
    if e.type == t:
        return e
    if isinstance(e, ir.Const):
        return constant(t, int(e.value))
    return ir.Cast(t, e)


def binary(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return an operator's result, in the type of the first operand."""
    return ir.Binary(a.type, op, a, b)


def unified(a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Return two numbers in the narrowest type with room for both."""
    if a.type == b.type:
        return a, b
    t = _exact_range(a).joined(_exact_range(b)).type
    return cast(a, t), cast(b, t)


def _exact_range(e: ir.Expr) -> Range:
    return Range(int(e.value), int(e.value)) if isinstance(e, ir.Const) else range_of(e.type)


def compared(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return the exact comparison of two numbers of any types."""
    left, right = unified(a, b)
    return ir.Binary(BOOL, op, left, right)


def as_bit(truth: ir.Expr) -> ir.Expr:
    """Return a boolean as the number 0 or 1."""
    if isinstance(truth, ir.Const):
        return ir.Const(Bits(1), int(truth.value))
    return ir.Cast(Bits(1), truth)


def not_zero(e: ir.Expr) -> ir.Expr:
    """Return a number as a boolean: whether it is not 0."""
    if isinstance(e, ir.Cast) and e.operand.type == BOOL:
        return e.operand
    if isinstance(e, ir.Const):
        return ir.Const(BOOL, bool(e.value))
    if e.type == Bits(1):
        return ir.Cast(BOOL, e)
    return ir.Binary(BOOL, "!=", e, ir.Const(e.type, 0))


def shifted_right(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return a number shifted to the right by another, which is not negative."""
    if not isinstance(b, ir.Const):
        if isinstance(b.type, Bits) and b.type.signed:
            b = cast(b, Bits(b.type.width))
        return binary(">>", a, b)
    assert isinstance(a.type, Bits), a
    amount = int(b.value)
    if not a.type.signed:
        return bits_of(a, amount, max(1, a.type.width - amount))
    return binary(">>", a, ir.Const(Bits(32), min(amount, a.type.width)))


def bits_of(e: ir.Expr, start: int, width: int) -> ir.Expr:
    """Return `width` bits of a number from bit `start` on."""
    assert isinstance(e.type, Bits), e
    own = e.type.width
    if start == 0:
        return cast(e, Bits(width))
    if start + width <= own:
        return ir.SliceOf(Bits(width), e, start + width - 1, start)
    if e.type.signed:
        return cast(binary(">>", e, ir.Const(Bits(32), min(start, own))), Bits(width))
    if start >= own:
        return ir.Const(Bits(width), 0)
    return cast(ir.SliceOf(Bits(own - start), e, own - 1, start), Bits(width))
