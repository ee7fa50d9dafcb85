"""Plain tables: small exact keys, and actions that only assign parameters and constants.

    action set(bit<8> v) { value = v; }        table t { key = { code : exact; }
                                                         actions = { set; NoAction; } }

A plain table's record holds no action data but the values that the entry's action assigns, in
the places of all actions' targets; the numbers of the actions are apart. Where all actions assign
a target, or where the target is known to be 0 before (a record holds 0 where its action does not
assign), applying the table is to load the record: no branch, and no more memory than an array in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Header, Struct
from gradplane.switch.jit.value_layout import Layouts

MOST_BYTES = 16  # of a record

Path = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class LookupOutcome:
    """A target: its place in the record (bytes) and the numbers of the actions that assign it."""

    target: ir.LValue
    offset: int
    size: int
    actions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Plain:
    """The plan of a plain table's records.

    args: for each action, (offset, size) in the record of each parameter, size 0 if it is unused.
    constants: for each action, (offset, size, value) of its constants. align: a record's."""

    outcomes: tuple[LookupOutcome, ...]
    args: tuple[tuple[tuple[int, int], ...], ...]
    constants: tuple[tuple[tuple[int, int, int], ...], ...]
    size: int
    align: int


def plain_actions(table: ir.Table, layouts: Layouts) -> Plain | None:
    """Return the plan of a plain table's records; None if some action does more than assign."""
    assigned: list[dict[Path, ir.Assign]] = []
    for choice in table.actions:
        found = _assignments(choice.action)
        if found is None:
            return None
        assigned.append(found)
    targets = {path: s.target for found in assigned for path, s in found.items()}
    if not targets:
        return None
    outcomes, places, end, most = [], {}, 0, 1
    for path, target in sorted(targets.items(), key=lambda t: -layouts.of(t[1].type).size):
        place = layouts.of(target.type)
        end = -(-end // place.align) * place.align
        by = frozenset(i for i, found in enumerate(assigned) if path in found)
        places[path] = end, place.size
        outcomes.append(LookupOutcome(target, *places[path], by))
        end, most = end + place.size, max(most, place.align)
    if end > MOST_BYTES:
        return None
    args, constants = [], []
    for choice, found in zip(table.actions, assigned, strict=True):
        where = {s.value: places[path] for path, s in found.items()}
        args.append(tuple(where.get(p, (0, 0)) for p in choice.action.params))
        pairs = ((places[path], s.value) for path, s in found.items())
        constants.append(tuple((*at, _bits(e)) for at, e in pairs if isinstance(e, ir.Const)))
    return Plain(tuple(outcomes), tuple(args), tuple(constants), -(-end // most) * most, most)


def _assignments(action: ir.Action) -> dict[Path, ir.Assign] | None:
    """Return each target's assignment; None unless each parameter goes to at most one target and
    the action does nothing else."""
    out: dict[Path, ir.Assign] = {}
    used: set[ir.Expr] = set()
    for stmt in action.body:
        if not isinstance(stmt, ir.Assign) or stmt.value.type != stmt.target.type:
            return None
        path, value = _path(stmt.target, action.params), stmt.value
        if path is None or path in out or value in used:
            return None
        if not isinstance(value, ir.Const) and value not in action.params:
            return None
        out[path] = stmt
        used.add(value)
    return out


def _path(target: ir.LValue, params: Sequence[ir.Var]) -> Path | None:
    """Return the name of a scalar variable, or of a scalar field of structs and headers."""
    if not isinstance(target.type, Bits | Bool):
        return None
    names: list[object] = []
    at: ir.Expr = target
    while isinstance(at, ir.FieldOf):
        if not isinstance(at.base.type, Struct | Header):
            return None
        names.append(at.index)
        at = at.base
    if not isinstance(at, ir.Var) or at in params:
        return None
    return (at, *reversed(names))


def _bits(e: ir.Const) -> int:
    width = e.type.width if isinstance(e.type, Bits) else 1
    return int(e.value) & ((1 << width) - 1)
