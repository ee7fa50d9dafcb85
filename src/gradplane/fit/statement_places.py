"""The places that statements read and set: how often, and in which actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gradplane.fit.places import Place, leaves, reads
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.walk import nested
from gradplane.switch.source import Span


def read_by(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement itself reads."""
    for e in walk.reads(stmt):
        yield from reads(e)


def written_by(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement itself sets."""
    for target in walk.writes(stmt):
        yield from leaves(target)


def count_reads(stmts: Sequence[ir.Stmt]) -> Counter[ir.Var]:
    """Return how often statements, and those inside them, read each variable without fields."""
    found: Counter[ir.Var] = Counter()
    for stmt in nested(stmts):
        found.update(place.var for place in read_by(stmt))
    return found


def across_actions(
    stmts: Sequence[ir.Stmt], called_actions: Mapping[Span, Span]
) -> frozenset[ir.Var]:
    """Return the variables that statements of different actions (or of none) use."""
    users: dict[ir.Var, set[Span | None]] = {}
    for stmt in stmts:
        own = called_actions.get(stmt.span)
        for inner in nested([stmt]):
            for place in (*read_by(inner), *written_by(inner)):
                users.setdefault(place.var, set()).add(own)
    return frozenset(var for var, actions in users.items() if len(actions) > 1)


def indices(stmts: Sequence[ir.Stmt]) -> frozenset[ir.Var]:
    """Return the variables that hand an index on to an access to a register."""
    reads_ = (s.body[0] for s in nested(stmts) if isinstance(s, ir.Block) and s.access is not None)
    args = (read.args[0] for read in reads_ if isinstance(read, ir.CallExtern) and read.args)
    return frozenset(arg for arg in args if isinstance(arg, ir.Var))
