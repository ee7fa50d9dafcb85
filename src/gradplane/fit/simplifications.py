"""Simplifications that the chip's compiler makes: what takes no stage of its own.

Some variables only stand for a field: parameters of inlined controls, and the like. Where a
variable is copied from a field or to one, and both never hold different values that are still
needed, they are one place, and the copies take no stage. Variables that stand for a condition are
decided where they are asked for. Dropped are statements that set metadata to zero where it is zero
anyway, and operations whose results nothing reads. Of a table that is applied in several branches
the chip has one, before all that follow any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from gradplane.fit.dependencies import Dependency
from gradplane.fit.logical_tables import GATEWAY, MATCH, LogicalTable
from gradplane.fit.places import Place, leaves, read_by, reads, written_by
from gradplane.fit.values import Operation, accesses
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import bodies, nested, statements
from gradplane.switch.source import Span

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


# -- variables that stand for a condition -----------------------------------------------------


_DECIDE = ("==", "!=", "<", "<=", ">", ">=", "&&", "||")


def named_conditions(control: ir.Control, in_actions: Container[Span]) -> set[ir.Var]:
    """Return the variables of a control that one statement sets, to a condition, and that only
    conditions read. in_actions: the statements that are an action's."""
    named = {
        stmt.target: stmt
        for stmt in nested(control.body)
        if isinstance(stmt, ir.Assign) and _decides(stmt) and stmt.span not in in_actions
    }
    writes: Counter[ir.Var] = Counter()
    asked: Counter[ir.Var] = Counter()
    everywhere: Counter[ir.Var] = Counter()
    for stmt in statements(control):
        everywhere.update(place.var for place in read_by(stmt))
        writes.update(place.var for place in written_by(stmt))
        if isinstance(stmt, ir.If):
            asked.update(place.var for place in reads(stmt.cond))
    for setting in named.values():
        asked.update(place.var for place in reads(setting.value))
    return {
        var
        for var in named
        if isinstance(var, ir.Var) and writes[var] == 1 and asked[var] == everywhere[var]
    }


def _decides(stmt: ir.Assign) -> bool:
    value = stmt.value
    while isinstance(value, ir.Unary) and value.op == "!":
        value = value.operand
    return isinstance(value, ir.Binary) and value.op in _DECIDE


# -- zeros that are there already -------------------------------------------------------------


def needless_zeros(control: ir.Control, parser: ir.Parser | None) -> set[int]:
    """Return the identities of a control's statements that set variables or metadata to zero before
    anything else is set to them, in the parser or on the way."""
    own = [param.var for param in control.params[1:2]]
    parsed = statements(parser) if parser is not None else ()
    written = {place.storage for stmt in parsed for place in written_by(stmt)}
    found = set()
    for stmt in statements(control):
        places = list(written_by(stmt))
        names = {place.storage for place in places}
        private = all(not place.path or place.var in own for place in places)
        if _sets_zero(stmt) and private and names.isdisjoint(written):
            found.add(id(stmt))
        else:
            written |= names
    return found


def _sets_zero(stmt: ir.Stmt) -> bool:
    if not isinstance(stmt, ir.Assign):
        return False
    return isinstance(stmt.value, ir.Zero) or (
        isinstance(stmt.value, ir.Const) and not stmt.value.value
    )


# -- results that nothing reads ---------------------------------------------------------------


_Storage = tuple[object, tuple[int, ...]]


def without_unread(
    tables: list[LogicalTable], control: ir.Control, deparser: ir.Control | None
) -> list[LogicalTable]:
    """Return tables without the operations that set metadata which neither the control nor the
    deparser reads, and without tables that then do nothing."""
    own = _metadata(control)
    deparsed = statements(deparser) if deparser is not None else ()
    emitted = {p.storage for stmt in deparsed for p in read_by(stmt)}
    before = -1
    count = sum(len(t.operations) for t in tables)
    while count != before:
        before = count
        read = emitted | {p.storage for t in tables for p in (*t.key, *t.reads)}
        for table in tables:
            for action in table.actions:
                action.operations = [o for o in action.operations if _needed(o, read, own)]
        count = sum(len(t.operations) for t in tables)
    return [t for t in tables if t.kind in (MATCH, GATEWAY) or t.operations or t.table is not None]


def _metadata(control: ir.Control) -> set[str]:
    """Return the types of what only the program's own controls see: not the chip, not headers."""
    given = [p.var.type for p in control.params[1:2]]
    return {str(t) for t in given}


def _needed(operation: Operation, read: set[_Storage], own: Collection[str]) -> bool:
    if accesses(operation.value) or not operation.writes:
        return True
    return any(not _private(place, own) or place.storage in read for place in operation.writes)


def _private(place: Place, own: Collection[str]) -> bool:
    return not place.path or str(place.var.type) in own


# -- tables that are the same -----------------------------------------------------------------


def merged(
    tables: Sequence[LogicalTable], edges: Iterable[Dependency]
) -> tuple[list[LogicalTable], list[Dependency]]:
    """Return the tables of a control, each once, in an order of their dependencies, and these."""
    applied: dict[str, list[LogicalTable]] = {}
    for table in tables:
        if table.table is not None:
            applied.setdefault(table.name, []).append(table)
    one: dict[LogicalTable, LogicalTable] = {}
    for same in applied.values():
        if len(same) > 1:
            one |= dict.fromkeys(same, _union(same))
    if not one:
        return list(tables), list(edges)
    strongest: dict[tuple[LogicalTable, LogicalTable], Dependency] = {}
    for edge in edges:
        pair = one.get(edge.before, edge.before), one.get(edge.after, edge.after)
        known = strongest.get(pair)
        if pair[0] is not pair[1] and (known is None or known.distance < edge.distance):
            strongest[pair] = replace(edge, before=pair[0], after=pair[1])
    nodes = list(dict.fromkeys(one.get(table, table) for table in tables))
    return _in_order(nodes, strongest), list(strongest.values())


def _union(same: Sequence[LogicalTable]) -> LogicalTable:
    """Return the table that several applications are: in the branches that all of them are in."""
    arms = tuple(arm for arm in same[0].arms if all(arm in other.arms for other in same))
    deciders = tuple(dict.fromkeys(decider for table in same for decider in table.deciders))
    return replace(same[0], arms=arms, deciders=deciders)


def _in_order(
    tables: Sequence[LogicalTable], pairs: Iterable[tuple[LogicalTable, LogicalTable]]
) -> list[LogicalTable]:
    """Return tables with each behind those that it depends on; those in a circle come last."""
    after: dict[LogicalTable, list[LogicalTable]] = {}
    waits = dict.fromkeys(tables, 0)
    for before, table in pairs:
        after.setdefault(before, []).append(table)
        waits[table] += 1
    place = {table: n for n, table in enumerate(tables)}
    free = [n for n, table in enumerate(tables) if not waits[table]]
    heapify(free)
    found: list[LogicalTable] = []
    while free:
        table = tables[heappop(free)]
        found.append(table)
        for follower in after.get(table, ()):
            waits[follower] -= 1
            if not waits[follower]:
                heappush(free, place[follower])
    return [*found, *(table for table in tables if waits[table])]
