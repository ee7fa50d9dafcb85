"""Rules for the bodies of register actions that the chip's compiler has beyond those of an ALU.

The ALU takes and gives whole cells, and one operation of a comparison; a cell of one bit is set or
cleared.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.fit.chip_resources import Overrun
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.expression_builder import COMPARISONS
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.ir.walk import blocks, nested, outside_helpers, statements, within

_CARRYING = ("+", "-", "|+|", "|-|")
_RESOURCE = "meter_alus"


def broken_accesses(package: ir.Package, alu_bits: int) -> Iterator[Overrun]:
    """Yield what the register actions of a pipeline ask for that the compiler refuses. alu_bits: of
    the larger of an ALU's two numbers."""
    seen: set[tuple[object, str]] = set()
    for _, block in blocks(package):
        for stmt in statements(block):
            if isinstance(stmt, ir.Block) and stmt.access is not None:
                for overrun in _body(stmt, alu_bits):
                    if (overrun.span, overrun.what) not in seen:
                        seen.add((overrun.span, overrun.what))
                        yield overrun


def _body(access: ir.Block, alu_bits: int) -> Iterator[Overrun]:
    copy = access.body[1]
    assert isinstance(copy, ir.Assign) and isinstance(copy.target, ir.Var), copy
    value = copy.target
    for stmt in nested(access.body[2:-1], outside_helpers):
        match stmt:
            case ir.If(cond=cond):
                yield from _condition(cond, value, stmt)
            case ir.Assign(target=ir.SliceOf(base=base) as target) if _root(base) is value:
                what = f"bits of the register's value are set: {expression_text(target)}"
                way_out = "set the whole value, or give the cell a field of these bits"
                yield Overrun(_RESOURCE, what, stmt.span, way_out)
            case ir.Assign(target=target, value=new) if target is value:
                yield from _set(value, new, stmt, alu_bits)


def _condition(condition: ir.Expr, value: ir.Var, stmt: ir.Stmt) -> Iterator[Overrun]:
    for e in within(condition):
        if isinstance(e, ir.SliceOf) and _root(e.base) is value:
            what = f"a condition reads bits of the register's value: {expression_text(e)}"
            way_out = "compare the whole value, masked (&), or give the cell a field of these bits"
            yield Overrun(_RESOURCE, what, stmt.span, way_out)
        if isinstance(e, ir.Binary) and e.op in COMPARISONS and _packet_operations(e, value) > 1:
            what = f"a comparison makes several operations: {expression_text(e)}"
            way_out = "compute one of them before, in the control"
            yield Overrun(_RESOURCE, what, stmt.span, way_out)


def _packet_operations(comparison: ir.Binary, value: ir.Var) -> int:
    """Return how many operations of a comparison have a field of the packet as an operand."""
    return sum(
        isinstance(e, ir.Binary)
        and e.op in ("+", "-")
        and any(
            isinstance(part, ir.LValue) and _root(part) is not value for part in (e.left, e.right)
        )
        for side in (comparison.left, comparison.right)
        for e in within(side)
    )


def _set(value: ir.Var, new: ir.Expr, stmt: ir.Stmt, alu_bits: int) -> Iterator[Overrun]:
    width = value.type.width if isinstance(value.type, Bits) else 0
    one = width == 1 or isinstance(value.type, Bool)
    if one and new is not value and not isinstance(new, ir.Const | ir.Zero):
        what = f"a cell of one bit is set to {expression_text(new)}, which is no constant"
        way_out = "let conditions choose between 0 and 1, or use a cell of eight bits"
        yield Overrun(_RESOURCE, what, stmt.span, way_out)
    if width > alu_bits and any(
        isinstance(e, ir.Binary) and e.op in _CARRYING for e in within(new)
    ):
        what = f"a number of {width} bits is added up; an ALU adds {alu_bits}"
        way_out = f"use a cell of two fields of {alu_bits} bits, and carry in a second register"
        yield Overrun(_RESOURCE, what, stmt.span, way_out)


def _root(e: ir.Expr) -> ir.Expr:
    while isinstance(e, ir.FieldOf | ir.SliceOf | ir.ElementOf):
        e = e.base
    return e
