"""The comparisons in expressions, as the conditions of a stateful ALU count them."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.walk import operands

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
