"""Facts that hold wherever a parser ends: the bounds of numbers, and which headers are valid.

The states are followed until nothing changes, with an interval for each number that has bounds. A
select narrows those of its keys. Where several ways lead to a state its intervals hold the values
of all; ways that give metadata other constants are kept apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Header, Struct, Type
from gradplane.switch.ir.walk import nested, path, writes

Steps = tuple[int | str, ...]
Place = tuple[ir.Var, Steps]
"""A number's variable and fields, by their numbers; "valid" behind a header's."""
Bounds = tuple[int, int]
Facts = dict[Place, Bounds]
Apart = frozenset[tuple[Place, Bounds]] | None
WIDENED = 4  # changes of a state's facts, after which those that change are dropped
FINAL = "accept", "reject"
MOST_APART = 32  # facts of a state that are kept apart


def place_of(e: ir.Expr) -> Place:
    """Return a place, or the variable or field that it is in where an index is dynamic."""
    found = path(e)
    while found is None:
        e = e.base  # type: ignore[attr-defined]
        found = path(e)
    return found


def changed(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement writes itself; mark_to_drop() writes two fields only."""
    for target in writes(stmt):
        var, steps = place_of(target)
        if isinstance(stmt, ir.CallExtern) and stmt.name == "mark_to_drop":
            assert isinstance(target.type, Struct), target.type
            names = [f.name for f in target.type.fields]
            yield from ((var, (*steps, names.index(n))) for n in ("egress_spec", "mcast_grp"))
        else:
            yield var, steps


def forget(facts: dict[Place, Any], places: Iterable[Place]) -> None:
    """Drop what is known of places, and of what is in them."""
    for var, steps in places:
        for one in [p for p in facts if p[0] is var and p[1][: len(steps)] == steps]:
            del facts[one]


def headers(var: ir.Var, t: Type, steps: Steps = ()) -> Iterator[Place]:
    """Yield the validity of each header in a structure, those in arrays left out."""
    if isinstance(t, Header):
        yield var, (*steps, "valid")
    elif isinstance(t, Struct):
        for i, f in enumerate(t.fields):
            yield from headers(var, f.type, (*steps, i))


def numbers(var: ir.Var, t: Type, steps: Steps = ()) -> Iterator[Place]:
    """Yield the numbers in a structure, those of headers and arrays left out."""
    if isinstance(t, Bits):
        yield var, steps
    elif isinstance(t, Struct):
        for i, f in enumerate(t.fields):
            yield from numbers(var, f.type, (*steps, i))


@dataclass
class Ends:
    """The result. states: that a packet can reach. cases: that it can take. accepted, rejected: one
    of these holds where a parser ends without an error, and with one."""

    states: set[str] = field(default_factory=set)
    cases: set[ir.SelectCase] = field(default_factory=set)
    accepted: list[Facts] = field(default_factory=list)
    rejected: list[Facts] = field(default_factory=list)


def ends(parser: ir.Parser, start: Facts) -> Ends:
    """Return what holds where a parser ends. start: what holds when it starts."""
    apart = {place for p in parser.params if p.direction != "out"
             for place in numbers(p.var, p.var.type)}  # fmt: skip
    before: dict[str, dict[Apart, Facts]] = {name: {} for name in (*parser.states, *FINAL)}
    found, left, changes = Ends(), list[tuple[str, Apart]](), Counter[tuple[str, Apart]]()

    def reach(name: str, there: Facts) -> None:
        known = before[name]
        which = None
        if None not in known:
            which = frozenset((p, b) for p, b in there.items() if p in apart and b[0] == b[1])
        if which not in known and len(known) >= MOST_APART:
            for one in known.values():
                there = _joined(one, there)
            which = None
            known.clear()
        old = known.get(which)
        new = _joined(old, there)
        if new == old:
            return
        changes[name, which] += 1
        if old is not None and changes[name, which] > WIDENED:
            new = {p: b for p, b in new.items() if old.get(p) == b}
        known[which] = new
        left.append((name, which))

    reach("start", _after(parser.setup, start))
    while left:
        name, which = left.pop()
        if name in FINAL or which not in before[name]:
            continue
        state, facts = parser.states[name], before[name][which]
        found.states.add(name)
        for stmt in state.body:
            after = _after([stmt], facts)
            if not isinstance(stmt, ir.Assign | ir.SetValid):  # an error may end it here,
                reach("reject", facts)
                whole = isinstance(stmt, ir.Extract) and stmt.size is None
                if not (whole or isinstance(stmt, ir.Verify)):
                    reach("reject", after)
            facts = after
            if isinstance(stmt, ir.Verify) and _is_false(stmt.cond):
                break
        else:
            reach("reject", facts)  # or behind them: no case fits
            for case in state.cases:
                there = _taken(state, case, facts)
                if there is not None:
                    found.cases.add(case)
                    # A program's own way to reject is no error.
                    reach("accept" if case.next == "reject" else case.next, there)
    found.accepted, found.rejected = (list(before[name].values()) for name in FINAL)
    return found


def _joined(one: Facts | None, other: Facts) -> Facts:
    """Return what holds in both cases."""
    if one is None:
        return dict(other)
    both = {
        p: (min(low, other[p][0]), max(high, other[p][1]))
        for p, (low, high) in one.items() if p in other
    }  # fmt: skip
    return {p: b for p, b in both.items() if p[1][-1:] != ("valid",) or b[0] == b[1]}


def _after(stmts: Iterable[ir.Stmt], facts: Mapping[Place, Bounds]) -> Facts:
    after = dict(facts)
    for stmt in stmts:
        bounds = _bounds(stmt.value, after) if isinstance(stmt, ir.Assign) else None
        for one in nested([stmt]):
            forget(after, changed(one))
        match stmt:
            case ir.SetValid() if path(stmt.target):
                var, steps = place_of(stmt.target)
                after[var, (*steps, "valid")] = (int(stmt.valid), int(stmt.valid))
            case ir.Extract() if path(stmt.target):
                var, steps = place_of(stmt.target)
                after[var, (*steps, "valid")] = (1, 1)
            case ir.Assign() if path(stmt.target) and bounds is not None:
                after[place_of(stmt.target)] = bounds
    return after


def _bounds(e: ir.Expr, facts: Mapping[Place, Bounds]) -> Bounds | None:
    """Return the bounds of an unsigned number; None without."""
    if not isinstance(e.type, Bits) or e.type.signed:
        return None
    if isinstance(e, ir.Const) and isinstance(e.value, int):
        return e.value, e.value
    return facts.get(place_of(e)) if isinstance(e, ir.LValue) and path(e) else None


def _taken(state: ir.State, case: ir.SelectCase, facts: Facts) -> Facts | None:
    """Return what holds once a case is taken; None if it never is."""
    if len(case.matches) != len(state.select):
        return facts
    there = dict(facts)
    for key, match in zip(state.select, case.matches, strict=True):
        wanted = _wanted(match)
        if wanted is None or not isinstance(key.type, Bits) or key.type.signed:
            continue
        low, high = _bounds(key, there) or (0, (1 << key.type.width) - 1)
        low, high = max(low, wanted[0]), min(high, wanted[1])
        if low > high:
            return None
        if isinstance(key, ir.LValue) and path(key):
            there[place_of(key)] = (low, high)
    return there


def _wanted(match: ir.Match) -> Bounds | None:
    """Return the bounds of the numbers that a match takes; None where it is none of a range."""
    ends = (match.low, match.high) if isinstance(match, ir.MatchRange) else (
        (match.value, match.value) if isinstance(match, ir.MatchValue) else ()
    )  # fmt: skip
    values = [e.value for e in ends if isinstance(e, ir.Const) and isinstance(e.value, int)]
    return (values[0], values[1]) if len(values) == 2 else None


def _is_false(e: ir.Expr) -> bool:
    return isinstance(e, ir.Const) and e.value is False
