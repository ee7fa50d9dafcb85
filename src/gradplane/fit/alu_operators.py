"""The operators that an ALU of an action has, and what does the work of the others."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.fit.conditions import is_power_of_two
from gradplane.fit.overruns import Impossible
from gradplane.fit.values import Value
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text

FREE = ("++",)
"""Operators that the way to an ALU makes, without an operation of it."""
ARITHMETIC = ("+", "-", "|+|", "|-|")
LEAST_IN_CODE, MOST_IN_CODE = -8, 7
"""The constants that an ALU's instruction holds."""
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
CONDITION = Impossible(
    "an action has conditions on its own data only",
    "put the condition into the control, with an action for each way",
)
SHIFT = Impossible(
    "an ALU shifts by constants only", "use a table with an action for each number of places"
)
COMPARISON = Impossible(
    "an ALU does not compare",
    "make it a condition in the control, or a table, that sets the result to a constant",
)
SUBTRAHEND = Impossible(
    "an ALU does not subtract what comes with an action",
    "let the control plane (or the constant entries) give the negative number, and add it",
)
CHOICE = Impossible(
    "an ALU does not choose by a condition",
    "make the choice a condition in the control, or a table",
)
INDEX = Impossible(
    "an index is a field, a hash or a part of one, and is not computed",
    "compute it into a field in an action before, which is called",
)


def narrow_operand(name: str) -> Impossible:
    """Return why a field of a header, of this name, is no operand of a wider sum."""
    return Impossible(
        f"{name} is a field of a header, and narrower than the sum that it is an operand of",
        "set metadata of the sum's width to it in a statement before, and add this",
    )


def apply_operator(e: ir.Expr, found: Value, is_data: Callable[[ir.Expr], bool]) -> None:
    """Add what an operator takes to the value of its operands. is_data: whether an expression has
    only parameters of the action."""
    match e:
        case ir.Binary(op=op, left=left, right=right):
            shift = op in ("<<", ">>")
            found.constant |= not shift and (_large(left) or _large(right))
            if op in FREE or (isinstance(left, ir.Const) and isinstance(right, ir.Const)):
                return
            found.steps += 1
            found.carries = found.carries or op in ARITHMETIC
            shifted = op in ("<<", ">>") and not isinstance(right, ir.Const)
            powers = (left, right) if op == "*" else (right,)
            if op in ("*", "/", "%") and not any(map(is_power_of_two, powers)):
                found.impossible = _product(op)
            elif shifted:
                found.impossible = SHIFT
            elif op in _COMPARISONS:
                found.impossible = COMPARISON
            elif op in ("-", "|-|") and is_data(right):
                found.impossible = SUBTRAHEND
        case ir.Unary():
            found.steps += 1
        case ir.Mux():
            found.steps += 1
            found.impossible = CHOICE


def _product(op: str) -> Impossible:
    way_out = "look the result up in a table, add shifted numbers in several actions, or use the"
    return Impossible(f"an ALU does not compute {op}", f"{way_out} MathUnit of a register action")


def is_extreme(e: ir.Mux) -> bool:
    """Return whether a choice is a minimum or maximum: the one of two that is less, or not."""
    if not isinstance(e.cond, ir.Binary) or e.cond.op not in ("<", "<=", ">", ">="):
        return False
    compared = {expression_text(e.cond.left), expression_text(e.cond.right)}
    return compared == {expression_text(e.then), expression_text(e.other)}


def _large(e: ir.Expr) -> bool:
    """Return whether a constant does not fit into an instruction, and comes as action data."""
    return isinstance(e, ir.Const) and not LEAST_IN_CODE <= int(e.value) <= MOST_IN_CODE
