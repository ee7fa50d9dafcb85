"""The rules of the chip's stateful ALUs, for the bodies of register actions.

An ALU has a cell of one or two numbers and takes up to two numbers from the packet. It makes
comparisons (two on Tofino 1, four on Tofino 2), computes each number of the cell by one of two
operations (`min` and `max` among them), which the comparisons choose, and gives results. It does
not multiply, divide or shift; a slice of a number from the packet, also written as a shift by a
constant and a cast, is wired to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from gradplane.switch.arch.tna.chips import chip_of
from gradplane.switch.arch.tna.register_access import REGISTERS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.expression_builder import COMPARISONS, comparisons
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Bool, Struct, Type
from gradplane.switch.ir.walk import blocks, nested, operands, outside_helpers, statements, within
from gradplane.switch.source import Diagnostic, Span

_ARITHMETIC = ("+", "-", "|+|", "|-|", "&", "|", "^")
_FORBIDDEN = {"*": "multiply", "/": "divide", "%": "divide", "<<": "shift", ">>": "shift",
              "++": "concatenate"}  # fmt: skip
_PACKET_NUMBERS, _OPERATIONS = 2, 2


def cells(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse registers whose cells the chip does not have."""
    chip = chip_of(program)
    sizes = [size for size in (8, 16, 32, 64) if size <= chip.alu_bits]
    whole = {1, *sizes, 2 * chip.alu_bits}
    for instance in program.externs:
        t = instance.type_args[0] if instance.type_args else None
        if instance.kind == ir.REGISTER_ACTION and isinstance(t, Struct) and t.fields:
            widths = {_width(f.type) for f in t.fields}
            fits = len(t.fields) in (1, 2) and len(widths) == 1 and widths <= set(sizes)
        elif instance.type in REGISTERS and t is not None:
            fits = _width(t) in {*whole, *(2 * size for size in sizes)}
        else:
            continue
        if not fits:
            what = f"{instance.type} {instance.name}: {chip.name} has no cells of {t}"
            known = f"bit or int of 1, {', '.join(map(str, [*sizes, 2 * chip.alu_bits]))} bits"
            hint = f"a cell is {known}, or a struct of one or two equal fields of"
            hint += f" {' or '.join(map(str, sizes))} bits"
            yield Diagnostic(instance.span, what, hint=hint)


def _is_register(instance: ir.ExternInstance | None) -> bool:
    return instance is not None and instance.type in REGISTERS


def _width(t: Type) -> int:
    if isinstance(t, Bool):
        return 1
    return t.width if isinstance(t, Bits) else 0


def bodies(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse bodies of register actions that the ALU cannot compute."""
    most = chip_of(program).comparisons
    seen: set[Span] = set()
    for _, block in blocks(program.package):
        for stmt in statements(block):
            if isinstance(stmt, ir.Block) and stmt.access is not None:
                for problem in _Body(stmt, most).problems():
                    if problem.span not in seen:
                        seen.add(problem.span)
                        yield problem


class _Body:
    """One register action's body, inlined between the read and the write of the cell."""

    def __init__(self, access: ir.Block, most: int) -> None:
        assert access.access is not None
        self.name = access.access.name
        self.most = most
        self.start = access.span
        # The read, the assignment to the value, then to each result; the write comes last.
        copy = access.body[1]
        assert isinstance(copy, ir.Assign) and isinstance(copy.target, ir.Var), copy
        self.value = copy.target
        self.stmts = list(nested(access.body[2:-1], outside_helpers))
        self.local: set[ir.Var] = {self.value}
        for stmt in nested(access.body[2:-1]):  # the results of helpers, too
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var):
                self.local.add(stmt.target)
            elif isinstance(stmt, ir.CallExtern) and isinstance(stmt.result, ir.Var):
                self.local.add(stmt.result)

    def problems(self) -> Iterator[Diagnostic]:
        compared: set[tuple[str, ...]] = set()
        taken: set[str] = set()
        computed: dict[str, set[str]] = {}
        for stmt in self.stmts:
            if isinstance(stmt, ir.CallExtern) and _is_register(stmt.instance):
                what = f"register action {self.name} accesses a second register"
                yield self._problem(stmt, what, "access it before, in the control")
                return
            for e in _expressions(stmt):
                yield from self._operators(e, stmt.span)
                compared |= set(_compared(e))
                taken |= set(self._packet(e))
                if len(compared) > self.most:
                    what = f"register action {self.name} makes more than {self.most} comparisons"
                    yield self._problem(stmt, what, "compute conditions before, in the control")
                    return
                if len(taken) > _PACKET_NUMBERS:
                    what = f"register action {self.name} takes more than {_PACKET_NUMBERS} numbers"
                    yield self._problem(stmt, f"{what} from the packet", ", ".join(sorted(taken)))
                    return
            if isinstance(stmt, ir.Assign) and _root(stmt.target) is self.value:
                place, way = expression_text(stmt.target), expression_text(stmt.value)
                if way == place:
                    continue  # it is kept, which takes no operation
                ways = computed.setdefault(place, set())
                ways.add(way)
                if len(ways) > _OPERATIONS:
                    what = f"register action {self.name} computes {place} in more than two ways"
                    yield self._problem(stmt, what, "an ALU chooses between two operations")
                    return

    def _problem(self, stmt: ir.Stmt, what: str, hint: str) -> Diagnostic:
        return Diagnostic(stmt.span, what, hint=hint)

    def _operators(self, e: ir.Expr, span: Span, within: bool = False) -> Iterator[Diagnostic]:
        """Yield the operators that an ALU lacks, and operations on results of operations."""
        if self._is_packed(e):
            return
        if isinstance(e, ir.Binary):
            if e.op in _FORBIDDEN and not isinstance(e.left, ir.Const):
                what = f"a stateful ALU cannot {_FORBIDDEN[e.op]} ({e.op})"
                yield Diagnostic(span, what, hint="compute it before, in the control")
                return
            if e.op in COMPARISONS:
                within = False
                for part in (e.left, e.right):
                    yield from self._forbidden(part, span)
                return
            if e.op in _ARITHMETIC:
                if within:
                    what = "a stateful ALU makes one operation for each number of the cell"
                    yield Diagnostic(span, what, hint="compute the other before, in the control")
                    return
                within = e.op != "|"
        if _is_extreme(e):
            within = True
        for part in _inputs(e):
            yield from self._operators(part, span, within)

    def _forbidden(self, e: ir.Expr, span: Span) -> Iterator[Diagnostic]:
        """Yield the operators that comparisons lack, too; they may add up several numbers."""
        if self._is_packed(e):
            return
        if isinstance(e, ir.Binary) and e.op in _FORBIDDEN:
            what = f"a stateful ALU cannot {_FORBIDDEN[e.op]} ({e.op})"
            yield Diagnostic(span, what, hint="compute it before, in the control")
        for part in operands(e):
            yield from self._forbidden(part, span)

    def _is_packed(self, e: ir.Expr) -> bool:
        """Return whether an expression puts fields of the packet together, or cuts a part of one
        out, which the hash unit in front of the ALU does: one number for the ALU."""
        if not (isinstance(e, ir.Binary) and e.op == "++") and not _is_part(e):
            return False
        return not any(part in self.local for part in within(e))

    def _packet(self, e: ir.Expr) -> Iterator[str]:
        """Yield the numbers that do not come from the cell."""
        if isinstance(e, ir.Const | ir.Zero):
            return
        if self._is_packed(e):
            yield expression_text(e)
            return
        if isinstance(e, ir.LValue):
            if _root(e) not in self.local:
                yield expression_text(e)
            return
        for part in operands(e):
            yield from self._packet(part)


def _compared(e: ir.Expr) -> Iterator[tuple[str, ...]]:
    """Yield a key for each comparison; `min` and `max` are operations."""
    if isinstance(e, ir.Binary) and e.op in COMPARISONS:
        yield from (key for key, _ in comparisons(e))
        return
    for part in _inputs(e):
        yield from _compared(part)


def _is_part(e: ir.Expr) -> bool:
    """Return whether a cast leaves bits of a shifted number, which is a slice of the number: after
    a shift to the right those of the number alone, without zeros in front."""
    if not (isinstance(e, ir.Cast) and isinstance(e.operand, ir.Binary)):
        return False
    shift, width = e.operand, _width(e.type)
    if shift.op not in ("<<", ">>") or not isinstance(shift.right, ir.Const):
        return False
    cut = width + int(shift.right.value) if shift.op == ">>" else width
    return isinstance(shift.left, ir.LValue) and cut <= _width(shift.left.type)


def _inputs(e: ir.Expr) -> Iterable[ir.Expr]:
    """Return the operands; of `min` and `max` the two numbers."""
    return (e.then, e.other) if _is_extreme(e) else operands(e)


def _is_extreme(e: ir.Expr) -> TypeGuard[ir.Mux]:
    """Return whether a choice is what the desugaring makes of `min` or `max`."""
    if not isinstance(e, ir.Mux) or not isinstance(e.cond, ir.Binary):
        return False
    return e.cond.left is e.then and e.cond.right is e.other


def _expressions(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    match stmt:
        case ir.Assign(value=value):
            yield value
        case ir.If(cond=cond):
            yield cond


def _root(e: ir.Expr) -> ir.Expr:
    while isinstance(e, ir.FieldOf | ir.SliceOf | ir.ElementOf):
        e = e.base
    return e
