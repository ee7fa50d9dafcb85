"""Large headers that a pipeline reads only after they were parsed or set: a packet's memory need
not hold zeros for them at its start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Header, Struct, Type
from gradplane.switch.ir.walk import (
    bodies,
    expressions,
    fields_named,
    operands,
    path,
    reads,
    statements,
)
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.runtime.shared_memory import LINE

Place = tuple[int, ...]
"""A header's place in the headers' struct, by field positions."""
Known = frozenset[Place]


def guarded_headers(
    layouts: Layouts, headers: Type, blocks: Iterable[tuple[ir.Parser | ir.Control, ir.Var]]
) -> list[tuple[int, int]]:
    """Return the spans (first byte, end) of a value of type `headers` that no block reads before it
    has written them. blocks: each with its parameter for the value."""
    large = dict(_large(layouts, headers, (), 0))
    read: set[Place] = set()
    moved = {place for block, var in blocks if large for place in _moved(block, var, large)}
    for block, var in blocks if large else ():
        _Reads(var, large, moved, read).block(block)
    if moved & read:  # what is read may have been any of them
        read |= moved
    return sorted(span for place, span in large.items() if place not in read)


def named_whole(block: ir.Parser | ir.Control, var: ir.Var) -> bool:
    """Return whether a block names a struct but for its fields, and to emit it."""
    nodes: list[object] = [s for s in statements(block) if not isinstance(s, ir.Emit)]
    if isinstance(block, ir.Parser):
        nodes += block.states.values()
    return fields_named(nodes, var) is None


def _large(
    layouts: Layouts, t: Type, place: Place, start: int
) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Return the places and the fields' spans of the headers longer than a line of the cache."""
    if isinstance(t, Header):
        if layouts.of(t).size > LINE:
            yield place, (start, start + layouts.of(t).valid)
    elif isinstance(t, Struct):
        for i, (field, offset) in enumerate(zip(t.fields, layouts.of(t).offsets, strict=True)):
            yield from _large(layouts, field.type, (*place, i), start + offset)
    elif isinstance(t, Array):
        first, size = layouts.of(t).offsets[0], layouts.of(t.element).size
        for i in range(t.size):
            yield from _large(layouts, t.element, (*place, i), start + first + i * size)


def _moved(block: ir.Parser | ir.Control, var: ir.Var, large: Iterable[Place]) -> Iterator[Place]:
    """Yield the headers of stacks that a block pushes or pops: of these an earlier write says
    nothing."""
    for stmt in statements(block):
        if isinstance(stmt, ir.Push | ir.Pop):
            found = path(stmt.target)
            stack = found[1] if found is not None and found[0] is var else ()
            yield from (place for place in large if place[: len(stack)] == stack)


class _Reads:
    """Finds the headers that a block may read before they are known to have been written.

    A header that was written once stays so, whatever follows; `known` holds those on all ways to a
    statement."""

    def __init__(
        self, var: ir.Var, large: Mapping[Place, object], moved: set[Place], read: set[Place]
    ) -> None:
        self._var = var
        self._large = large
        self._moved = moved
        self._read = read

    def block(self, block: ir.Parser | ir.Control) -> None:
        if isinstance(block, ir.Control):
            self._body(block.body, frozenset())
            return
        self._body(block.setup, frozenset())
        for state in block.states.values():
            known = self._body(state.body, frozenset())
            for e in reads(state):
                self._expression(e, known)
            self._body(state.on_reject, frozenset())

    def _body(self, stmts: Sequence[ir.Stmt], known: Known) -> Known:
        for stmt in stmts:
            known = self._statement(stmt, known)
        return known

    def _statement(self, stmt: ir.Stmt, known: Known) -> Known:
        """Note what a statement reads; return what is known after it."""
        match stmt:
            case ir.If():
                self._expression(stmt.cond, known)
                self._body(stmt.then, known | self._implied(stmt.cond))
                self._body(stmt.other, known)
                return known
            case ir.Emit() if self._within(stmt.value) is not None:
                return known  # only a valid header is emitted
            case ir.SetValid(valid=False) | ir.Push() | ir.Pop():
                return known
            case ir.Extract(target=ir.NextOf(), size=None):
                return known
            case ir.SetValid(target=target) | ir.Extract(target=target, size=None):
                place = self._within(target)
                if place is not None:
                    return known | {place}
            case ir.Assign(target=target, value=value):
                self._expression(value, known)
                place = self._within(target)
                if place is not None:
                    return known | {place} if place in self._large else known
        for e in expressions(stmt):
            self._expression(e, known)
        for body in bodies(stmt):
            self._body(body, known)
        if isinstance(stmt, ir.ApplyTable):
            for choice in stmt.table.actions:
                self._body(choice.action.body, known)
        return known

    def _implied(self, cond: ir.Expr) -> Known:
        """Return the headers that are valid, and so were written, if a condition holds."""
        if isinstance(cond, ir.Binary) and cond.op == "&&":
            return self._implied(cond.left) | self._implied(cond.right)
        if isinstance(cond, ir.IsValid):
            place = self._within(cond.base)
            return frozenset() if place is None else frozenset({place})
        return frozenset()

    def _within(self, e: ir.Expr) -> Place | None:
        """Return the place in the value that an l-value names for certain."""
        found = path(e)
        return found[1] if found is not None and found[0] is self._var else None

    def _expression(self, e: ir.Expr, known: Known) -> None:
        if isinstance(e, ir.IsValid) and self._within(e.base) is not None:
            return
        if isinstance(e, ir.LastIndex):
            return
        if isinstance(e, ir.Binary) and e.op == "&&":
            self._expression(e.left, known)
            self._expression(e.right, known | self._implied(e.left))
            return
        place = self._within(e)
        if place is not None:
            for header in self._large:
                shared = min(len(place), len(header))
                written = header in known and header not in self._moved
                if place[:shared] == header[:shared] and not written:
                    self._read.add(header)
        else:  # an index is dynamic: within what its base names
            for part in operands(e):
                self._expression(part, known)
