"""Goals: the values that a program compares parts of a packet with, and the places of those parts.

A goal is a case of a select or switch, an entry in the source, any key of a table, an index within
an array of cells, or a comparison: expressions with the values that they must have. Where these are
fields of headers, parts of fields, bits that the parser looks ahead at, or copies of such, the
packet's trace shows their place, and the values are written there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradplane.differ.cells import index_of
from gradplane.switch.interp import trace_events
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Header, Struct, Type
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.source import Span

Goal = Sequence[tuple[ir.Expr, ir.Match]]
Events = Iterable[trace_events.TraceEvent]
_COPIES = 3
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


@dataclass(frozen=True)
class Place:
    """Bits of a packet."""

    start: int
    width: int

    def part(self, hi: int, lo: int) -> Place:
        """Return the place of the bits hi to lo, counted from the last one."""
        return Place(self.start + self.width - 1 - hi, hi - lo + 1)

    def write(self, packet: bytes, value: int, mask: int) -> bytes:
        """Return the packet with a value's bits under a mask; unchanged where it is too short."""
        shift = len(packet) * 8 - self.start - self.width
        if shift < 0:
            return packet
        mask &= (1 << self.width) - 1
        number = int.from_bytes(packet, "big") & ~(mask << shift)
        return (number | (value & mask) << shift).to_bytes(len(packet), "big")


def goals(program: ir.Program) -> list[Goal]:
    """Return the goals of a program."""
    found: list[Goal] = []
    for _, block in blocks(program.package):
        if isinstance(block, ir.Parser):
            for state in block.states.values():
                found += [_pairs(state.select, case.matches) for case in state.cases]
        for statement in statements(block):
            found += _of_statement(statement)
    return [goal for goal in found if goal]


def _of_statement(statement: ir.Stmt) -> Iterator[Goal]:
    match statement:
        case ir.If(cond=condition) | ir.Verify(cond=condition):
            yield from _comparisons(condition)
        case ir.SwitchStmt(subject=subject, cases=cases):
            for values, _ in cases:
                for value in values:
                    yield [(subject, ir.MatchValue(ir.Const(subject.type, value)))]
        case ir.ApplyTable(table=table):
            for entry in table.entries:
                yield _pairs([key.expr for key in table.keys], entry.matches)
            yield [(key.expr, _any(key.expr.type)) for key in table.keys]
        case ir.CallExtern() if found := index_of(statement):
            yield [_within(*found)]


def _within(index: ir.Expr, size: int) -> tuple[ir.Expr, ir.Match]:
    last = ir.Const(index.type, max(size - 1, 0))
    return index, ir.MatchRange(ir.Const(index.type, 0), last)


def _pairs(keys: Sequence[ir.Expr], matches: Sequence[ir.Match]) -> Goal:
    pairs = zip(keys, matches, strict=False)
    return [(k, m) for k, m in pairs if not isinstance(m, ir.MatchAny | ir.MatchSet)]


def _comparisons(condition: ir.Expr) -> Iterator[Goal]:
    match condition:
        case ir.Binary(op="&&" | "||", left=left, right=right):
            yield from (*_comparisons(left), *_comparisons(right))
        case ir.Unary(operand=operand):
            yield from _comparisons(operand)
        case ir.Binary(op=op, left=left, right=ir.Const() as right) if op in _COMPARISONS:
            yield [(left, _about(right))]
        case ir.Binary(op=op, left=ir.Const() as left, right=right) if op in _COMPARISONS:
            yield [(right, _about(left))]


def _any(t: Type) -> ir.Match:
    """Return a match of all of a type's values."""
    return ir.MatchRange(ir.Const(t, 0), ir.Const(t, (1 << getattr(t, "width", 1)) - 1))


def _about(number: ir.Const) -> ir.Match:
    """Return a match of a number and its neighbours."""
    if not isinstance(number.type, Bits):
        return ir.MatchValue(number)
    low, high = (ir.Const(number.type, int(number.value) + step) for step in (-1, 1))
    return ir.MatchRange(low, high)


def numbers(goal: Goal) -> Iterator[tuple[int, int]]:
    """Yield the width and value of each number in a goal."""
    for expr, match in goal:
        if isinstance(expr.type, Bits):
            value, _ = chosen(match, expr.type.width, lambda low, high: low)
            yield expr.type.width, value


def chosen(match: ir.Match, width: int, between: Callable[[int, int], int]) -> tuple[int, int]:
    """Return a value that fits a match, and the mask of the bits that count."""
    full = (1 << width) - 1
    match match:
        case ir.MatchValue(value=ir.Const(value=value)):
            return int(value) & full, full
        case ir.MatchMask(value=ir.Const(value=value), mask=ir.Const(value=mask)):
            return int(value) & full, int(mask) & full
        case ir.MatchRange(low=ir.Const(value=low), high=ir.Const(value=high)):
            return between(int(low), int(high)) & full, full
    return 0, 0


class Places:
    """Where a program's packets have the values of its expressions."""

    def __init__(self, program: ir.Program) -> None:
        self._headers: dict[Span, Header] = {}
        self._looks: dict[str, list[tuple[int, bool]]] = {}
        self._copies: dict[str | int, ir.Expr] = {}  # of what is assigned: the first value
        for _, block in blocks(program.package):
            for statement in statements(block):
                self._learn(statement)
            for state in block.states.values() if isinstance(block, ir.Parser) else ():
                self._looks[state.name] = list(_looks(state))
        self._looked = {variable for found in self._looks.values() for variable, _ in found}

    def _learn(self, statement: ir.Stmt) -> None:
        match statement:
            case ir.Extract(target=ir.LValue(type=Header() as header)):
                self._headers[statement.span] = header
            case ir.Assign(target=target, value=value) if not isinstance(value, ir.Const):
                self._copies.setdefault(_name(target), value)

    def may_have(self, expr: ir.Expr, copies: int = _COPIES) -> bool:
        """Return whether packets can have an expression's bits."""
        match expr:
            case ir.Binary(op="++", left=left, right=right):
                return self.may_have(left, copies) or self.may_have(right, copies)
            case ir.Binary(op="&", left=base) | ir.Cast(operand=base) | ir.SliceOf(base=base):
                return self.may_have(base, copies)
            case ir.FieldOf(base=ir.Expr(type=Header())):
                return True
            case ir.Var(id=id) | ir.FieldOf(base=ir.Var(id=id)) if id in self._looked:
                return True
            case ir.LValue() if copies and (copied := self._copies.get(_name(expr))):
                return self.may_have(copied, copies - 1)
        return False

    def fields(self, header: trace_events.Extracted) -> list[Place]:
        """Return the places of a header's fields."""
        return list(_inside(self._headers[header.span], header.at))

    def aimed(self, packet: bytes, events: Events, goal: Goal, rng: random.Random) -> bytes:
        """Return the packet with the values of a goal; unchanged where it does not have them."""
        known = _Known(self._headers, self._looks, self._copies, events)
        for expr, match in goal:
            width = expr.type.width if isinstance(expr.type, Bits) else 1
            value, mask = chosen(match, width, rng.randint)
            for place, part, bits in known.parts(expr, value, mask):
                packet = place.write(packet, part, bits)
        return packet


class _Known:
    """The places in a packet with that trace."""

    def __init__(
        self,
        headers: dict[Span, Header],
        looks: dict[str, list[tuple[int, bool]]],
        copies: dict[str | int, ir.Expr],
        events: Events,
    ) -> None:
        self._headers: dict[Header, int] = {}
        self._looks: dict[int, int] = {}
        self._copies = copies
        position, later = 0, list[int]()
        for event in events:
            if isinstance(event, trace_events.Extracted) and event.span in headers:
                self._headers[headers[event.span]] = event.at
                position = event.at + event.bits
            elif isinstance(event, trace_events.StateEntered):
                self._looks |= dict.fromkeys(later, position)
                looked = looks.get(event.state, [])
                self._looks |= {variable: position for variable, first in looked if first}
                later = [variable for variable, first in looked if not first]
        self._looks |= dict.fromkeys(later, position)

    def parts(
        self, expr: ir.Expr, value: int, mask: int, copies: int = _COPIES
    ) -> Iterator[tuple[Place, int, int]]:
        """Yield the places of an expression's bits, with the value and the mask of each.

        copies: how many assignments are followed back.
        """
        match expr:
            case ir.Binary(op="++", left=left, right=ir.Expr(type=Bits(width=low)) as right):
                yield from self.parts(left, value >> low, mask >> low, copies)
                yield from self.parts(right, value, mask, copies)
            case ir.Binary(op="&", left=left, right=ir.Const(value=bits)):
                yield from self.parts(left, value, mask & int(bits), copies)
            case ir.Cast(operand=operand):
                yield from self.parts(operand, value, mask, copies)
            case _ if place := self._place(expr):
                yield place, value, mask
            case ir.LValue() if copies and (copied := self._copies.get(_name(expr))):
                yield from self.parts(copied, value, mask, copies - 1)

    def _place(self, expr: ir.Expr) -> Place | None:
        match expr:
            case ir.SliceOf(base=base, hi=hi, lo=lo):
                place = self._place(base)
                return place and place.part(hi, lo)
            case ir.FieldOf(base=base, index=index):
                start = self._start(base)
                return None if start is None else [*_inside(base.type, start)][index]
            case ir.Var(id=id, type=Bits(width=width)) if id in self._looks:
                return Place(self._looks[id], width)
        return None

    def _start(self, base: ir.Expr) -> int | None:
        if isinstance(base, ir.Var) and base.id in self._looks:
            return self._looks[base.id]
        return self._headers.get(base.type) if isinstance(base.type, Header) else None


def _looks(state: ir.State) -> Iterator[tuple[int, bool]]:
    """Yield the variables that a state looks ahead into, and whether it has extracted nothing."""
    first = True
    for statement in nested(state.body):
        first = first and not isinstance(statement, ir.Extract | ir.Advance)
        if isinstance(statement, ir.Lookahead) and isinstance(statement.target, ir.Var):
            yield statement.target.id, first


def _name(target: ir.LValue) -> str | int:
    return target.id if isinstance(target, ir.Var) else expression_text(target)


def _inside(t: Type, start: int) -> Iterator[Place]:
    """Yield the places of the fields of a struct or header; a field without a width has one bit."""
    for field in t.fields if isinstance(t, Header | Struct) else ():
        width = getattr(field.type, "width", 1)
        yield Place(start, width)
        start += width
