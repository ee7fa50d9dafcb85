"""Build IR expressions, folding constants.

And list the comparisons in one, as the conditions of a stateful ALU count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import ops
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    Array,
    Bits,
    Bool,
    Fields,
    Header,
    Struct,
    Type,
    Union,
)
from gradplane.switch.ir.walk import operands

TRUE = ir.Const(BOOL, True)
FALSE = ir.Const(BOOL, False)


def number(t: Type, value: int) -> ir.Const:
    return ir.Const(t, ops.wrap(t)(value))


def sized(a: ir.Expr) -> ir.Expr:
    """Return the expression itself; an `int` without a width gets one, at least 32 bits."""
    if not isinstance(a, ir.Const) or a.type != INTEGER:
        return a
    value = int(a.value)
    return number(Bits(max(32, value.bit_length() + (value < 0))), value)


def zero(t: Type) -> ir.Expr:
    """Return the default value of a type."""
    if isinstance(t, Bits | Bool):
        return ir.Const(t, ops.zero(t))
    return ir.Zero(t)


def unary(op: str, a: ir.Expr) -> ir.Expr:
    if op == "+":
        return a
    if isinstance(a, ir.Const):
        return ir.Const(a.type, ops.unary(op, a.type, a.value))
    return ir.Unary(a.type, op, a)


def binary(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Build `a op b` on scalars; && and || are also folded with one constant operand."""
    if isinstance(a, ir.Const) and isinstance(b, ir.Const):
        value = ops.binary(op, a.type, b.type, a.value, b.value)
        return ir.Const(ops.result_type(op, a.type, b.type), value)
    if op in ("&&", "||"):
        for one, other in ((a, b), (b, a)):
            if isinstance(one, ir.Const):
                return other if one.value == (op == "&&") else one
    return ir.Binary(ops.result_type(op, a.type, b.type), op, a, sized(b))


def cast(t: Type, a: ir.Expr) -> ir.Expr:
    if t == a.type:
        return a
    if isinstance(a, ir.Const):
        return ir.Const(t, ops.cast(t, a.type, a.value))
    return ir.Cast(t, a)


def slice_of(a: ir.Expr, hi: int, lo: int) -> ir.Expr:
    if isinstance(a, ir.Const):
        assert isinstance(a.value, int)
        return ir.Const(Bits(hi - lo + 1), ops.slice_bits(a.value, hi, lo))
    if isinstance(a.type, Bits) and not a.type.signed and (hi, lo) == (a.type.width - 1, 0):
        return a
    return ir.SliceOf(Bits(hi - lo + 1), a, hi, lo)


def mux(cond: ir.Expr, then: ir.Expr, other: ir.Expr) -> ir.Expr:
    if isinstance(cond, ir.Const):
        return then if cond.value else other
    return ir.Mux(then.type, cond, then, other)


def field(a: ir.Expr, index: int) -> ir.Expr:
    """Build a member of a struct, header or union value."""
    assert isinstance(a.type, Fields), a.type
    f = a.type.fields[index]
    match a:
        case ir.Make(fields=fields):
            return fields[index]
        case ir.Zero():
            return zero(f.type)
        case ir.Mux(cond=cond, then=then, other=other):
            return mux(cond, field(then, index), field(other, index))
    assert isinstance(a, ir.LValue), a
    return ir.FieldOf(f.type, a, index, f.name)


def element(a: ir.Expr, index: ir.Expr) -> ir.Expr:
    """Build a[index]. A constant index is inside where `a` is no storage."""
    assert isinstance(a.type, Array), a
    match a, index:
        case ir.Make(fields=fields), ir.Const(value=int() as at):
            return fields[at]
        case ir.Zero(), _:
            return zero(a.type.element)
        case ir.Mux(cond=cond, then=then, other=other), _:
            return mux(cond, element(then, index), element(other, index))
    assert isinstance(a, ir.LValue), a
    return ir.ElementOf(a.type.element, a, index)


def parts(a: ir.Expr) -> list[ir.Expr]:
    """Return the fields of a struct or header, or the elements of an array."""
    if isinstance(a.type, Array):
        return [element(a, number(Bits(32), i)) for i in range(a.type.size)]
    assert isinstance(a.type, Fields), a.type
    return [field(a, i) for i in range(len(a.type.fields))]


def valid(a: ir.Expr) -> ir.Expr:
    match a:
        case ir.Make():
            return TRUE
        case ir.Zero():
            return FALSE
        case ir.Mux(cond=cond, then=then, other=other):
            return mux(cond, valid(then), valid(other))
    return ir.IsValid(BOOL, a)


def equal(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Build a == b on any type.

    Headers are equal when both are invalid, or both are valid with equal fields.
    """
    match a.type:
        case Struct() | Union() | Array():
            return _all(map(equal, parts(a), parts(b)))
        case Header():
            va, vb = valid(a), valid(b)
            same = _all(map(equal, parts(a), parts(b)))
            both = binary("&&", binary("&&", va, vb), same)
            neither = binary("&&", unary("!", va), unary("!", vb))
            return binary("||", both, neither)
    return binary("==", a, b)


def spread(target: ir.LValue, bits: ir.LValue) -> Iterator[ir.Stmt]:
    """Return assignments of a struct of the same bits to a value that holds headers.

    The struct's type is that of type_erasure.without_headers.
    """
    match target.type:
        case Header(fields=fields):
            yield ir.Assign(
                target, ir.Make(target.type, [field(bits, i) for i in range(len(fields))])
            )
        case Struct(fields=fields):
            for i, f in enumerate(fields):
                yield from spread(ir.FieldOf(f.type, target, i, f.name), _part(bits, i))
        case Array(size=size):
            for i in range(size):
                at = number(Bits(32), i)
                yield from spread(ir.ElementOf(target.type.element, target, at), _part(bits, i))
        case _:
            yield ir.Assign(target, bits)


def _part(struct: ir.LValue, index: int) -> ir.LValue:
    part = field(struct, index)
    assert isinstance(part, ir.LValue), part
    return part


def _all(conditions: Iterable[ir.Expr]) -> ir.Expr:
    """Build the conjunction as a balanced tree: a struct may have many fields."""
    level = list(conditions) or [TRUE]
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [*(binary("&&", a, b) for a, b in pairs), *odd]
    return level[0]


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

Key = tuple[str, str, str]


def comparisons(e: ir.Expr) -> Iterator[tuple[Key, ir.Binary]]:
    """Yield the comparisons in an expression, each with a key that it shares with its opposite."""
    if isinstance(e, ir.Binary) and e.op in COMPARISONS:
        yield _key(e), e
        return
    for part in operands(e):
        yield from comparisons(part)


def _key(e: ir.Binary) -> Key:
    left, right = expression_text(e.left), expression_text(e.right)
    if e.op in ("==", "!="):
        return ("==", min(left, right), max(left, right))
    return ("<", left, right) if e.op in ("<", ">=") else ("<", right, left)
