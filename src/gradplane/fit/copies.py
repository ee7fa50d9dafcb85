"""Variables that only stand for a field: parameters of inlined controls, and the like.

Where a variable is copied from a field or to one, and both never hold different values that are
still needed, they are one place. The chip's compiler does the same, so the copies take no stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gradplane.fit.places import Place, leaves
from gradplane.fit.statement_places import read_by, written_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import bodies

_Field = tuple[ir.Var, tuple[int, ...]]


@dataclass(slots=True)
class _Event:
    """The reads, writes and copies of a statement. order: equal for all that one table may do."""

    order: int
    reads: set[_Field]
    writes: set[_Field]
    copies: list[tuple[Place, Place]] = field(default_factory=list)


@dataclass(slots=True)
class Copies:
    """Which field each variable stands for; `resolve` goes by it."""

    stands_for: dict[_Field, Place] = field(default_factory=dict)

    def resolve(self, place: Place) -> Place:
        """Return the place that a place is."""
        seen = 0
        while (other := self.stands_for.get(place.field)) is not None and seen < len(
            self.stands_for
        ):
            seen += 1
            high, low = other.low + place.high, other.low + place.low
            place = Place(other.var, other.path, other.name, other.width, high, low)
        return place


def copies_in(control: ir.Control) -> Copies:
    """Return which local variables of a control stand for fields."""
    events = list(_Walk().body(control.body))
    local = set(control.locals)
    found = Copies()
    touched: dict[_Field, list[_Event]] = {}
    for event in events:
        for each in event.reads | event.writes:
            touched.setdefault(each, []).append(event)
    pairs = [pair for event in events for pair in event.copies]
    for target, source in pairs:
        for copied_one, other in ((target, source), (source, target)):
            variable, whole = found.resolve(copied_one), found.resolve(other)
            if variable.var not in local or variable.bits != variable.width:
                continue
            if whole.field != variable.field and _separable(variable, whole, touched):
                found.stands_for[variable.field] = whole
                merged = touched.get(variable.field, []) + touched.get(whole.field, [])
                merged = sorted({id(e): e for e in merged}.values(), key=lambda e: e.order)
                for taken in merged:
                    _rename(taken, variable.field, whole.field)
                touched[whole.field] = merged
                break
    return found


def _rename(event: _Event, old: _Field, new: _Field) -> None:
    for each in (event.reads, event.writes):
        if old in each:
            each.discard(old)
            each.add(new)


def _separable(variable: Place, other: Place, touched: dict[_Field, list[_Event]]) -> bool:
    """Return whether a variable and a field are never both needed with different values."""
    own = touched.get(variable.field, [])
    theirs = touched.get(other.field, [])
    if not own:
        return False
    between = {id(e) for e in own if e.copies and _both(e, variable.field, other.field)}
    first, last = own[0].order, own[-1].order
    written = any(variable.field in e.writes and id(e) not in between for e in own)
    for event in theirs:
        if id(event) in between or not first <= event.order < last:
            continue
        if other.field in event.writes:
            return False
        if written and event.order > _first_write(own, variable.field, between):
            return False
    return True


def _first_write(own: Sequence[_Event], variable: _Field, between: set[int]) -> int:
    return min(e.order for e in own if variable in e.writes and id(e) not in between)


def _both(event: _Event, a: _Field, b: _Field) -> bool:
    taken = event.reads | event.writes
    return a in taken and b in taken


class _Walk:
    def __init__(self) -> None:
        self.order = 0

    def body(self, stmts: Sequence[ir.Stmt], one: bool = False) -> Iterator[_Event]:
        """Yield the events of statements; one: they are all of one table."""
        for stmt in stmts:
            self.order += not one
            yield self._event(stmt)
            if isinstance(stmt, ir.ApplyTable):
                for choice in stmt.table.actions:
                    yield from self.body(choice.action.body, True)
                continue
            access = isinstance(stmt, ir.Block) and stmt.access is not None
            for inside in bodies(stmt):
                for event in self.body(inside, one or access):
                    if access:
                        event.copies = []  # within the ALU of a register
                    yield event

    def _event(self, stmt: ir.Stmt) -> _Event:
        read = {place.field for place in read_by(stmt)}
        targets = list(written_by(stmt))
        written = {place.field for place in targets}
        copies: list[tuple[Place, Place]] = []
        match stmt:
            case ir.Assign(target=ir.Var(), value=ir.Zero()):
                read, written = set(), set()  # an out parameter that has no value yet
            case ir.Assign(value=value):
                copies = copied(targets, value)
        return _Event(self.order, read, written, copies)


def copied(targets: Sequence[Place], value: ir.Expr) -> list[tuple[Place, Place]]:
    """Return the whole fields that an assignment copies, target and source of each."""
    if not isinstance(value, ir.LValue):
        return []
    sources = list(leaves(value))
    if len(sources) != len(targets):
        return []
    return [
        (target, source)
        for target, source in zip(targets, sources, strict=True)
        if target.bits == target.width == source.bits == source.width
    ]
