"""Matches of keys as terms: of entries in tables, and of cases in selects and switches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from gradplane.switch.interp.interpreter_values import Value
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Type
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.source import Span
from gradplane.switch.testgen.runs import Goal
from gradplane.switch.testgen.symbols import Symbol, Term, as_bits, is_symbolic


def exactly(f: KeyField, value: int) -> Match:
    """Return the match of a single value."""
    whole = {"lpm": (value, f.width), "ternary": (value, f.full), "range": (value, value)}
    return whole.get(f.kind, (value,))


def equal(keys: Sequence[Type], a: tuple[Value, ...], b: tuple[Value, ...]) -> Term | None:
    """Return the condition that two keys are equal; None if it does not depend on terms."""
    if not is_symbolic(*a, *b):
        return None
    pairs = zip(keys, a, b, strict=True)
    return z3.And(*(as_bits(t, x) == as_bits(t, y) for t, x, y in pairs))


def matched(
    fields: Sequence[KeyField], matches: tuple[Match, ...], values: tuple[Value, ...],
    keys: Sequence[Type],
) -> Term | None:  # fmt: skip
    """Return the condition that a key matches; None if it does not, whatever the terms' values."""
    parts = []
    for f, match, value, t in zip(fields, matches, values, keys, strict=True):
        if match is None:
            continue
        if not isinstance(value, Symbol):
            if not f.matches(match, int(value)):
                return None
            continue
        parts.append(_one_match(f, match, as_bits(t, value)))
    return z3.And(*parts)


def _one_match(f: KeyField, match: tuple[int, ...], bits: Term) -> Term:
    if f.kind == "range":
        low, high = match
        if f.signed:
            half = 1 << f.width
            low, high = (v - half if v >> (f.width - 1) else v for v in match)
            return z3.And(bits >= low, bits <= high)
        return z3.And(z3.UGE(bits, low), z3.ULE(bits, high))
    if f.kind in ("lpm", "ternary"):
        mask = match[1] if f.kind == "ternary" else f.mask(match[1])
        return bits & mask == match[0]
    return bits == match[0]


def by_rank(table: MatchTable, entries: list[Entry]) -> list[Entry]:
    """Return entries so that the one that wins comes first."""

    def rank(entry: Entry) -> tuple[int, int, int]:
        lengths = [
            0 if match is None else match[1]
            for f, match in zip(table.fields, entry.matches, strict=True) if f.kind == "lpm"
        ]  # fmt: skip
        return -entry.priority, -sum(lengths), entry.serial

    return sorted(entries, key=rank)


def first_of(conditions: Sequence[Term | None], index: int) -> Callable[[], Term]:
    """Return what makes the term of condition `index` without those before it; at the end: none."""

    def make() -> Term:
        parts = [z3.Not(c) for c in conditions[:index] if c is not None]
        if index < len(conditions):
            parts.append(conditions[index])
        return z3.simplify(z3.And(*parts))

    return make


def case_goal(place: Span, values: list[int]) -> Goal:
    """Return the goal of a case of a switch; no values: the default."""
    return "case", place, ", ".join(map(str, values)) or "default"


def select_goal(state: ir.State, case: ir.SelectCase) -> Goal:
    """Return the goal of a case of a select."""
    return "case", case.span, f"to {case.next}"


def unwrapped(kind: Type, value: int) -> int:
    return value & ((1 << kind.width) - 1) if isinstance(kind, Bits) else value


def fulfilled(match: ir.Match, value: Any, numbers: list[Any], kind: Type) -> bool:
    key, given = int(value), [int(n) for n in numbers]
    match match:
        case ir.MatchValue():
            return key == given[0]
        case ir.MatchMask():
            return key & given[1] == given[0] & given[1]
        case ir.MatchRange():
            flip = 1 << kind.width >> 1 if isinstance(kind, Bits) and kind.signed else 0
            return given[0] ^ flip <= key ^ flip <= given[1] ^ flip
    return True


def match_term(match: ir.Match, terms: list[Term], signed: bool) -> Any:
    value, *given = terms
    match match:
        case ir.MatchValue():
            return value == given[0]
        case ir.MatchMask():
            return value & given[1] == given[0] & given[1]
        case ir.MatchRange() if signed:
            return z3.And(given[0] <= value, value <= given[1])
        case ir.MatchRange():
            return z3.And(z3.ULE(given[0], value), z3.ULE(value, given[1]))
    return True
