"""Warnings about operations whose result does not depend on their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.expression_text import written_alike
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import Bits, Type
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_SAME_SIDES = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False}


def warn_comparison(c: Checker, e: ast.Binary, t: Type) -> None:
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


def warn_shift(c: Checker, e: ast.Binary, t: Type) -> None:
    """Warn of a shift by at least as many bits as the operand has."""
    amount = e.right.const
    if isinstance(t, Bits) and isinstance(amount, int) and amount >= t.width > 0:
        c.warn(e, "overflow", f"a shift by {amount} leaves none of the {t.width} bits")
