"""Indexes into counters, registers and meters of v1model: where a program has them, and which cells
there are. What an index beyond the end does is undefined, and may end BMv2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.interp import trace_events
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import nested

_ARRAYS = frozenset(("counter", "register", "meter"))


def index_of(stmt: ir.Stmt) -> tuple[ir.Expr, int] | None:
    """Return the index of a call that uses a cell, and the number of cells; None of others."""
    if not isinstance(stmt, ir.CallExtern) or stmt.instance is None:
        return None
    size = _size(stmt.instance)
    pairs = zip(stmt.args, stmt.directions, strict=True)
    given = [arg for arg, direction in pairs if direction in ("in", "")]
    return (given[0], size) if given and size is not None else None


def _size(instance: ir.ExternInstance) -> int | None:
    size = instance.args[0] if instance.args else None
    return size if instance.kind in _ARRAYS and isinstance(size, int) else None


def cells_of_data(program: ir.Program) -> dict[int, int]:
    """Return, by variable, the numbers of cells that action data is an index of."""
    found = dict[int, int]()
    for action in program.actions:
        data = {param.id for param in action.params}
        for index, size in _indexes(action.body):
            while isinstance(index, ir.Cast):
                index = index.operand
            if isinstance(index, ir.Var) and index.id in data and isinstance(index.type, Bits):
                values = 1 << index.type.width - index.type.signed
                found[index.id] = min(size, values, found.get(index.id, size))
    return found


def _indexes(body: list[ir.Stmt]) -> Iterator[tuple[ir.Expr, int]]:
    return (found for stmt in nested(body) if (found := index_of(stmt)))


class Cells:
    """A program's arrays, by name."""

    def __init__(self, program: ir.Program) -> None:
        sized = ((extern.name, _size(extern)) for extern in program.externs)
        self._sizes = {name: size for name, size in sized if size is not None}

    def left(self, events: Iterable[trace_events.TraceEvent]) -> bool:
        """Return whether a packet used a cell beyond the end of its array."""
        calls = (event for event in events if isinstance(event, trace_events.Called))
        return any(self._is_beyond(call) for call in calls)

    def _is_beyond(self, call: trace_events.Called) -> bool:
        size = self._sizes.get(call.name.rpartition(".")[0])
        return size is not None and bool(call.args) and call.args[0] >= size
