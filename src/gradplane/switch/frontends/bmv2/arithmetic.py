"""Numbers of the IR: constants, casts between widths, and operators on numbers of any two types."""

from __future__ import annotations

from gradplane.switch.frontends.bmv2.number_ranges import Range, range_of
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Type


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
