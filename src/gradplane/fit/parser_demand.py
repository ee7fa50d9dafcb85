"""The states and TCAM rows that a program's parsers take.

A state of the chip fills a limited number of containers and passes by 32 bytes; a state of a
program that takes more becomes several. Each way out of a state is a row. The chip's states name
the header that they fill, so a loop that fills a stack is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from gradplane.fit.chip_resources import PARSER_KEY_BITS, ChipResources
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Stack, bit_width
from gradplane.switch.ir.walk import nested
from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class ParserState:
    """A state of a program: the chip's states and rows for it, and the bytes that it passes by."""

    name: str
    span: Span
    states: int
    rows: int
    passed: int


@dataclass(frozen=True, slots=True)
class ParserDemand:
    """A parser's states, as the chip needs them. longest: the way through those that pass by the
    most bytes."""

    gress: str
    span: Span
    parts: tuple[ParserState, ...]
    longest: tuple[ParserState, ...]

    @property
    def states(self) -> int:
        return sum(part.states for part in self.parts)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def depth(self) -> int:
        """The bytes that the longest way passes by."""
        return _bytes(self.longest)


def parser_demand(parser: ir.Parser, gress: str, chip: ChipResources) -> ParserDemand:
    """Return what a parser takes of the chip's."""
    parts = {
        name: _state(state, chip, _rounds(parser, state)) for name, state in parser.states.items()
    }
    longest = _Ways(parser, parts).longest("start")
    return ParserDemand(gress, parser.span, tuple(parts.values()), longest)


@dataclass
class _Ways:
    """The ways through a parser, each loop once: its states count all of its rounds."""

    parser: ir.Parser
    parts: Mapping[str, ParserState]
    known: dict[str, tuple[ParserState, ...]] = field(default_factory=dict)

    def longest(self, name: str) -> tuple[ParserState, ...]:
        """Return the way from a state on that passes by the most bytes."""
        if name not in self.known:
            self.known[name] = ()  # for a way that comes back
            ways = [
                self.longest(case.next)
                for case in self.parser.states[name].cases
                if case.next in self.parts
            ]
            self.known[name] = (self.parts[name], *max(ways, key=_bytes, default=()))
        return self.known[name]


def _bytes(way: Iterable[ParserState]) -> int:
    return sum(part.passed for part in way)


def _rounds(parser: ir.Parser, state: ir.State) -> int:
    """Return how often a state is unrolled: in a loop that fills stacks, once for each element of
    the longest."""
    after = _after(parser, state)
    loop = [
        parser.states[name] for name in after if state.name in _after(parser, parser.states[name])
    ]
    sizes = [
        stmt.target.base.type.size
        for other in loop
        for stmt in nested(other.body)
        if isinstance(stmt, ir.Extract)
        and isinstance(stmt.target, ir.NextOf)
        and isinstance(stmt.target.base.type, Stack)
    ]
    return max(sizes, default=1)


def _after(parser: ir.Parser, state: ir.State) -> set[str]:
    """Return the states that a packet may reach from a state; itself only in a loop."""
    found: set[str] = set()
    pending = [state]
    while pending:
        for case in pending.pop().cases:
            if case.next in parser.states and case.next not in found:
                found.add(case.next)
                pending.append(parser.states[case.next])
    return found


def _state(state: ir.State, chip: ChipResources, rounds: int) -> ParserState:
    """Return what a state takes that is unrolled to so many rounds."""
    extracted = passed = 0
    for stmt in state.body:
        match stmt:
            case ir.Extract(target=target):
                bits = bit_width(target.type) or 0
                extracted += bits
                passed += bits
            case ir.Advance(bits=ir.Const(value=int() as bits)):
                passed += bits
            case ir.Assign(target=target):
                extracted += bit_width(target.type) or 0
    at_once = sum(bits * count for bits, count in chip.extractors.items())
    steps = max(1, ceil(extracted / at_once), ceil(passed / (8 * chip.shift)))
    key = sum(bit_width(e.type) or 0 for e in state.select)
    more = max(0, ceil(key / PARSER_KEY_BITS) - 1)
    rows = sum(_rows(case) for case in state.cases)
    all_rows = steps - 1 + max(1, rows) * (1 + more)
    return ParserState(
        state.name, state.span, rounds * (steps + more), rounds * all_rows, rounds * (passed // 8)
    )


def _rows(case: ir.SelectCase) -> int:
    """Return the rows of a way out: one for each pattern of its ranges, one a set's member."""
    rows = 1
    for match in case.matches:
        match match:
            case ir.MatchRange(low=ir.Const(value=low), high=ir.Const(value=high)):
                rows *= _prefixes(int(low), int(high))
            case ir.MatchSet(set=value_set):
                rows *= value_set.size
    return rows


def _prefixes(low: int, high: int) -> int:
    """Return how many masked values cover a range."""
    count = 0
    while low <= high:
        step = low & -low if low else 1 << (high + 1).bit_length()
        while step > high - low + 1:
            step >>= 1
        low += step
        count += 1
    return count
