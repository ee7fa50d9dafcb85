"""The math unit of a stateful ALU: functions of one number, by a table of sixteen values.

The number x is m * 2^e. Of m the table knows the four bits that begin with the first one:
8 to 15 stand for 1 to 2 - 1/8 and, for square roots, whose e must be even, 4 to 7 for 1/2 to 1.
The result is table[m] * 2^(scale + g), where g is e shifted (twice or half of it for squares and
roots) and inverted (for reciprocals). What is below one is cut off, what does not fit becomes the
largest number, and of 0 the result is table[0] * 2^scale. The tables for an operation and a factor
are those that the compiler in p4lang/p4c computes (backends/tofino/bf-p4c/mau/stateful_alu.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits

_OPERATIONS = {
    "mul": (False, 0), "sqr": (False, 1), "sqrt": (False, -1),
    "div": (True, 0), "rsqr": (True, 1), "rsqrt": (True, -1),
}  # fmt: skip
"""MathOp_t: whether the exponent is inverted, and how it is shifted."""

_POWERS = {0: 1.0, 1: 2.0, -1: 0.5}  # of m, by the shift of the exponent
_LOWEST, _HIGHEST = -32, 31  # scales


@dataclass(frozen=True, slots=True)
class MathUnit:
    """A configured unit. shift: of the exponent, 1 doubles and -1 halves it."""

    invert: bool
    shift: int
    scale: int
    table: tuple[int, ...]

    def value(self, exponent: int, index: int, width: int) -> int:
        """Return the result for a number with this exponent and table index."""
        moved = exponent * 2 if self.shift > 0 else exponent // 2 if self.shift else exponent
        places = self.scale + (-moved if self.invert else moved)
        entry = self.table[index]
        found = entry << places if places >= 0 else entry >> -places
        return min(found, (1 << width) - 1)

    def exponent(self, first: int) -> int:
        """Return the exponent of numbers whose first one is bit `first`."""
        return first + (first & 1) if self.shift < 0 else first


def math_unit(instance: ir.ExternInstance) -> MathUnit:
    """Return the unit that a program's instance configures. Raises ValueError for a wrong one."""
    first, *rest = instance.args
    if isinstance(first, bool):
        shift, scale, table = rest
        assert isinstance(shift, int) and isinstance(scale, int), rest
        assert isinstance(table, Sequence), table
        if shift not in _POWERS:
            raise ValueError(f"shift {shift} is not -1, 0 or 1")
        # The constructor lists the table from its last value to its first.
        return MathUnit(
            first, shift, scale, tuple(x for x in reversed(table) if isinstance(x, int))
        )
    numbers = [int(x) for x in rest if isinstance(x, int)]
    if not numbers or numbers[-1] <= 0 or numbers[0] <= 0:
        raise ValueError("the factor must be above 0")
    factor = numbers[0] / numbers[1] if len(numbers) > 1 else float(numbers[0])
    return _for(*_OPERATIONS[str(first).lower()], factor)


def _for(invert: bool, shift: int, factor: float) -> MathUnit:
    power = -_POWERS[shift] if invert else _POWERS[shift]
    start = 4 if shift < 0 else 8
    values = {i: (i / 8) ** power for i in range(start, 16)}
    # The greatest value of the function between the table's first number and 2.
    largest = factor * ((start / 8) ** power if invert else 2.0**power)
    scale = min(max(math.floor(math.log2(largest)) - 7, _LOWEST), _HIGHEST)
    table = [0] * 16
    for i, value in values.items():
        table[i] = min(max(round(value * factor * 2.0**-scale), 0), 255)
    return MathUnit(invert, shift, scale, tuple(table))


def statements(unit: MathUnit, x: ir.Expr, target: ir.LValue) -> list[ir.Stmt]:
    """Return the statements that compute the unit's result; x is evaluated several times."""
    t = target.type
    assert isinstance(t, Bits), t
    width = t.width

    def constant(exponent: int, index: int) -> ir.Expr:
        bits = unit.value(exponent, index, width - t.signed)
        return build.number(t, bits)

    body: list[ir.Stmt] = [ir.Assign(target, constant(0, 0))]
    plain = build.cast(Bits(width), x)
    for first in reversed(range(width - t.signed)):
        exponent = unit.exponent(first)
        low = first - 3 if exponent == first else first - 2
        chosen = build.slice_of(plain, first, max(low, 0))
        count = first - max(low, 0)  # bits below the first one
        known = 1 << count
        missing = 3 - count if exponent == first else 2 - count
        value = constant(exponent, known << missing)
        for rest in range(1, known):
            given = build.number(Bits(count + 1), known + rest)
            hit = build.binary("==", chosen, given)
            value = build.mux(hit, constant(exponent, (known + rest) << missing), value)
        one = build.binary("==", build.slice_of(plain, first, first), build.number(Bits(1), 1))
        body.append(ir.If(one, [ir.Assign(target, value)], []))
    # The highest one decides: the statements run from the lowest bit up.
    return [body[0], *reversed(body[1:])]
