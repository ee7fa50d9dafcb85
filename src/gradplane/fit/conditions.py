"""The conditions that a gateway decides: comparisons with constants, equality of two fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gradplane.fit.chip_resources import GATEWAY_BYTES, GATEWAY_RANGE_BITS
from gradplane.fit.places import Place, byte_count, reads
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits

_EQUAL, _ORDER = ("==", "!="), ("<", "<=", ">", ">=")


@dataclass(slots=True)
class Compared:
    """The places that conditions compare, by their bytes or by their order.

    problems: comparisons that the chip cannot make, each as a sentence.
    """

    equal: set[Place] = field(default_factory=set)
    ordered: set[Place] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str:
        """The reason why the chip cannot decide it; empty if it can."""
        if self.problems:
            return self.problems[0]
        ranges = sum(p.bits for p in self.ordered)
        if ranges > GATEWAY_RANGE_BITS:
            return (
                f"a condition compares {ranges} bits by their order; the chip compares"
                f" {GATEWAY_RANGE_BITS}, unless with a power of two"
            )
        beyond = byte_count(self.equal) - GATEWAY_BYTES
        if beyond > 0 and 8 * beyond > GATEWAY_RANGE_BITS - ranges + 7:
            return (
                f"a condition compares {byte_count(self.equal)} bytes; the chip compares"
                f" {GATEWAY_BYTES} and {GATEWAY_RANGE_BITS - ranges} bits"
            )
        return ""


def compared(exprs: Iterable[ir.Expr], outcomes: Iterable[ir.Var] = ()) -> Compared:
    """Return what conditions compare. outcomes: variables that are tables' results."""
    found = Compared()
    for e in exprs:
        _add(e, found, set(outcomes))
    return found


def _add(e: ir.Expr, found: Compared, outcomes: set[ir.Var]) -> None:
    match e:
        case ir.Binary(op="&&" | "||", left=left, right=right):
            _add(left, found, outcomes)
            _add(right, found, outcomes)
        case ir.Unary(op="!", operand=x) | ir.Cast(operand=x):
            _add(x, found, outcomes)
        case ir.Binary(op=op, left=left, right=right) if op in _EQUAL:
            sides = [s for s in (left, right) if not isinstance(s, ir.Const | ir.Zero)]
            found.problems += [_COMPUTES for s in sides if _computes(s)]
            found.equal |= set(reads(sides[0])) if sides else set()
        case ir.Binary(op=op, left=left, right=right) if op in _ORDER:
            _ordered(op, left, right, found)
        case ir.Var() if e in outcomes:
            pass
        case ir.LValue() | ir.IsValid():
            found.equal |= set(reads(e))
        case ir.Const() | ir.Zero():
            pass
        case _:
            found.problems.append(_COMPUTES)


_COMPUTES = "a condition compares, and does not compute"


def _ordered(op: str, left: ir.Expr, right: ir.Expr, found: Compared) -> None:
    constant, other = (left, right) if isinstance(left, ir.Const) else (right, left)
    if not isinstance(constant, ir.Const | ir.Zero):
        found.problems.append("a condition compares two fields by their order")
        return
    if _computes(other):
        found.problems.append(_COMPUTES)
        return
    if _of_leading_bits(op, constant, constant is left):
        found.equal |= set(reads(other))
    else:
        found.ordered |= set(reads(other))


def _of_leading_bits(op: str, constant: ir.Expr, on_left: bool) -> bool:
    """Return whether a comparison asks only if the leading bits are zero: x < 2**n."""
    value = int(constant.value) if isinstance(constant, ir.Const) else 0
    if isinstance(constant.type, Bits) and constant.type.signed:
        return value in (0, -1)  # the sign
    if on_left:
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
    bound = value if op in ("<", ">=") else value + 1
    return bound & (bound - 1) == 0


def _computes(e: ir.Expr) -> bool:
    """Return whether an operand is more than a field, bits of it, or it and a constant mask."""
    match e:
        case ir.Cast(operand=x) | ir.SliceOf(base=x):
            return _computes(x)
        case ir.Binary(op="&", left=left, right=ir.Const()):
            return _computes(left)
        case ir.Binary(op="%", left=left, right=ir.Const() as bound) if is_power_of_two(bound):
            return _computes(left)
        case ir.Binary(op="++", left=left, right=right):
            return _computes(left) or _computes(right)
        case ir.LValue() | ir.IsValid() | ir.Const() | ir.Zero():
            return False
    return True


def is_power_of_two(e: ir.Expr) -> bool:
    """Return whether an operand makes a shift or a mask of a product, quotient or remainder."""
    return isinstance(e, ir.Const) and int(e.value) > 0 and int(e.value).bit_count() == 1
