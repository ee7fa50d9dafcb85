"""The ranges of BMv2's numbers, which have no width: which values an operator's result can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item
from gradplane.switch.ir.types import Bits, Type


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
