"""The verifier's table of expressions: the rule for each kind, given its operands."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import BINARY, limits, result_type
from gradplane.switch.ir.types import (
    BOOL,
    Bits,
    Bool,
    Fields,
    Header,
    Stack,
    String,
    Struct,
    Type,
    Union,
    Varbit,
)

Problem = str | None


def problem_of(e: ir.Expr) -> Problem:
    """Return what is wrong with an expression's node, without its operands; None if nothing is."""
    return _EXPRESSIONS[type(e)](e)


def _const(e: ir.Const) -> Problem:
    match e.type:
        case Bits():
            low, high = limits(e.type)
            fits = isinstance(e.value, int) and not isinstance(e.value, bool)
            return None if fits and low <= int(e.value) <= high else f"is no {e.type}"
        case Bool():
            return None if isinstance(e.value, bool) else "is no bool"
        case String():
            return None if isinstance(e.value, str) else "is no string"
    return f"a constant of type {e.type}"


def _field(e: ir.FieldOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Fields):
        return f"its base is {t}"
    if not 0 <= e.index < len(t.fields):
        return f"{t} has no field {e.index}"
    field = t.fields[e.index]
    if field.name != e.name:
        return f"field {e.index} of {t} is {field.name}"
    return None if field.type == e.type else f"is {field.type}, not {e.type}"


def _element(e: ir.ElementOf | ir.NextOf | ir.LastOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Stack):
        return f"its base is {t}, not a stack"
    if isinstance(e, ir.ElementOf) and not isinstance(e.index.type, Bits):
        return f"its index is {e.index.type}"
    return None if t.element == e.type else f"is {t.element}, not {e.type}"


def _slice(e: ir.SliceOf) -> Problem:
    t = e.base.type
    if not isinstance(t, Bits) or not 0 <= e.lo <= e.hi < t.width:
        return f"no such bits in {t}"
    wanted = Bits(e.hi - e.lo + 1)
    return None if e.type == wanted else f"is {wanted}, not {e.type}"


def _last_index(e: ir.LastIndex) -> Problem:
    return None if isinstance(e.base.type, Stack) and e.type == Bits(32) else f"of {e.base.type}"


def _is_valid(e: ir.IsValid) -> Problem:
    ok = isinstance(e.base.type, Header | Union) and e.type == BOOL
    return None if ok else f"of {e.base.type}"


def _unary(e: ir.Unary) -> Problem:
    wanted = Bool if e.op == "!" else Bits
    ok = isinstance(e.operand.type, wanted) and e.type == e.operand.type
    return None if ok else f"{e.op} of {e.operand.type} is {e.type}"


def _binary(e: ir.Binary) -> Problem:
    if e.op not in BINARY:
        return f"there is no operator {e.op}"
    left, right = e.left.type, e.right.type
    if not _operands_fit(e.op, left, right):
        return f"{left} {e.op} {right}"
    wanted = result_type(e.op, left, right)
    return None if e.type == wanted else f"is {wanted}, not {e.type}"


def _operands_fit(op: str, left: Type, right: Type) -> bool:
    if op in ("&&", "||"):
        return left == right == BOOL
    if op in ("==", "!="):
        return left == right and isinstance(left, Bits | Bool | Varbit)
    both = isinstance(left, Bits) and isinstance(right, Bits)
    return both and (op in ("<<", ">>", "++") or left == right)


def _mux(e: ir.Mux) -> Problem:
    ok = e.cond.type == BOOL and e.then.type == e.other.type == e.type
    return None if ok else f"{e.cond.type} ? {e.then.type} : {e.other.type} is {e.type}"


def _cast(e: ir.Cast) -> Problem:
    source, target = e.operand.type, e.type
    bit = Bits(1)
    ok = isinstance(source, Bits) and isinstance(target, Bits)
    ok = ok or (source, target) in ((bit, BOOL), (BOOL, bit), (BOOL, BOOL))
    return None if ok else f"cast of {source} to {target}"


def _make(e: ir.Make) -> Problem:
    if not isinstance(e.type, Struct | Header):
        return f"makes a {e.type}"
    given, wanted = [f.type for f in e.fields], [f.type for f in e.type.fields]
    return None if given == wanted else f"{e.type} made of ({', '.join(map(str, given))})"


_EXPRESSIONS: dict[type[ir.Expr], Callable[..., Problem]] = by_class(
    ir.Expr,
    {
        ir.Const: _const,
        (ir.Zero, ir.Var): lambda e: None,
        ir.FieldOf: _field,
        (ir.ElementOf, ir.NextOf, ir.LastOf): _element,
        ir.SliceOf: _slice,
        ir.LastIndex: _last_index,
        ir.IsValid: _is_valid,
        ir.Unary: _unary,
        ir.Binary: _binary,
        ir.Mux: _mux,
        ir.Cast: _cast,
        ir.Make: _make,
    },
)
