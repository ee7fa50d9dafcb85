"""Parser counters: signed numbers of eight bits, on Tofino 2 with a stack of four.

    counter.set(4)          ->   counter = 4
    counter.push(x, true)   ->   below1 = counter; below1.follows = follows; counter = x; ...
    counter.pop()           ->   counter = below1; ...

A number that was pushed with `update_with_top` follows, while others are above it, the steps of the
one on top.
"""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits

COUNTER = Bits(8, True)
_BYTE, _FLAG = Bits(8), Bits(1)
_DEPTH = 4

MakeVar = Callable[[str, Bits], ir.Var]


class ParserCounter:
    """The variables of one counter: its numbers from the top on, and whether each follows."""

    def __init__(self, name: str, make: MakeVar) -> None:
        self._name = name
        self._make = make
        self.numbers = [make(name, COUNTER)]
        self._follows: list[ir.Var] = []

    @property
    def top(self) -> ir.Var:
        return self.numbers[0]

    def use_stack(self) -> None:
        """Make the variables below the top, before any statement is made."""
        names = [f"{self._name}.{depth}" for depth in range(1, _DEPTH)]
        self.numbers += [self._make(name, COUNTER) for name in names]
        self._follows = [self._make(f"{self._name}.follows{i}", _FLAG) for i in range(_DEPTH)]

    def set(self, value: ir.Expr) -> list[ir.Stmt]:
        return [ir.Assign(self.top, build.cast(COUNTER, value))]

    def push(self, value: ir.Expr, follows: bool) -> list[ir.Stmt]:
        down = self._moved(range(_DEPTH - 1, 0, -1), -1)
        flag = build.number(_FLAG, int(follows))
        return [*down, *self.set(value), ir.Assign(self._follows[0], flag)]

    def pop(self) -> list[ir.Stmt]:
        last = ir.Assign(self.numbers[-1], build.number(COUNTER, 0))
        return [*self._moved(range(_DEPTH - 1), 1), last,
                ir.Assign(self._follows[-1], build.number(_FLAG, 0))]  # fmt: skip

    def _moved(self, places: range, by: int) -> list[ir.Stmt]:
        """Copy to each place what is at another one."""
        out: list[ir.Stmt] = []
        for i in places:
            for row in (self.numbers, self._follows):
                out.append(ir.Assign(row[i], row[i + by]))
        return out

    def step(self, op: str, value: ir.Expr) -> list[ir.Stmt]:
        """Add to the top, or subtract from it, and from those below that follow it."""
        step = build.cast(COUNTER, build.cast(_BYTE, value))
        out: list[ir.Stmt] = [ir.Assign(self.top, build.binary(op, self.top, step))]
        for number, follows in zip(self.numbers[1:], self._follows[1:], strict=False):
            stepped = ir.Assign(number, build.binary(op, number, step))
            out.append(ir.If(build.binary("==", follows, build.number(_FLAG, 1)), [stepped], []))
        return out


def field_value(args: list[ir.Expr], error: int, literal: bool) -> tuple[list[ir.Stmt], ir.Expr]:
    """Return the number that a field's value makes, and the check that it is at most `max`.

    args: the field, then max, rotate, mask and add. literal: the mask is one, and not the number of
    its highest bit. Raises ValueError."""
    byte = build.cast(_BYTE, args[0])
    most, rotate, mask, add = args[1:5]
    numbers = [e.value for e in (rotate, mask) if isinstance(e, ir.Const)]
    if len(numbers) < 2:
        raise ValueError("rotate and mask must be constants")
    turn, chosen = int(numbers[0]) % 8, int(numbers[1])
    bits = chosen if literal else (2 << min(chosen, 7)) - 1
    masked = build.binary("&", _turned(byte, turn), build.number(_BYTE, bits))
    total = build.binary("+", masked, build.cast(_BYTE, add))
    fits = build.binary("<=", byte, build.cast(_BYTE, most))
    return [ir.Verify(fits, build.number(Bits(32), error))], total


def _turned(byte: ir.Expr, turn: int) -> ir.Expr:
    """Return a byte rotated to the right."""
    if not turn:
        return byte
    low = build.binary(">>", byte, build.number(_BYTE, turn))
    high = build.binary("<<", byte, build.number(_BYTE, 8 - turn))
    return build.binary("|", low, high)
