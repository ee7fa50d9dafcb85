"""The places that statements read and set: how often, and in which actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gradplane.fit.places import Place, leaves, reads
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import nested
from gradplane.switch.source import Span


def read_by(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Yield the expressions that a statement itself reads."""
    match stmt:
        case ir.Assign(target=target, value=value):
            yield value
            if isinstance(target, ir.ElementOf):
                yield target.index
        case ir.If(cond=cond):
            yield cond
        case ir.SwitchStmt(subject=subject):
            yield subject
        case ir.CallExtern(args=args, directions=directions):
            yield from (a for a, d in zip(args, directions, strict=True) if d != "out")
        case ir.CallUserExtern(args=given):
            yield from (a.value for a in given if isinstance(a.value, ir.Expr))
        case ir.ApplyTable(table=table):
            yield from (key.expr for key in table.keys)
        case ir.Emit(value=value):
            yield value


def written_by(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement itself sets."""
    for target in _targets(stmt):
        yield from leaves(target)


def _targets(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    match stmt:
        case (
            ir.Assign(target=target)
            | ir.SetValid(target=target)
            | ir.Push(target=target)
            | ir.Pop(target=target)
            | ir.Extract(target=target)
            | ir.Lookahead(target=target)
            | ir.PacketLength(target=target)
        ):
            yield target
        case ir.CallExtern(args=args, directions=directions, result=result):
            yield from (a for a, d in zip(args, directions, strict=True) if "out" in d)
            yield from [] if result is None else [result]
        case ir.CallUserExtern():
            yield from (var for var, _ in stmt.places)
        case ir.ApplyTable(hit=hit, action_run=run):
            yield from (out for out in (hit, run) if out is not None)


def count_reads(stmts: Sequence[ir.Stmt]) -> Counter[ir.Var]:
    """Return how often statements, and those inside them, read each variable without fields."""
    found: Counter[ir.Var] = Counter()
    for stmt in nested(stmts):
        for e in read_by(stmt):
            found.update(place.var for place in reads(e))
    return found


def across_actions(
    stmts: Sequence[ir.Stmt], called_actions: Mapping[Span, Span]
) -> frozenset[ir.Var]:
    """Return the variables that statements of different actions (or of none) use."""
    users: dict[ir.Var, set[Span | None]] = {}
    for stmt in stmts:
        own = called_actions.get(stmt.span)
        for inner in nested([stmt]):
            read = (place for e in read_by(inner) for place in reads(e))
            for place in (*read, *written_by(inner)):
                users.setdefault(place.var, set()).add(own)
    return frozenset(var for var, actions in users.items() if len(actions) > 1)


def indices(stmts: Sequence[ir.Stmt]) -> frozenset[ir.Var]:
    """Return the variables that hand an index on to an access to a register."""
    reads_ = (s.body[0] for s in nested(stmts) if isinstance(s, ir.Block) and s.access is not None)
    args = (read.args[0] for read in reads_ if isinstance(read, ir.CallExtern) and read.args)
    return frozenset(arg for arg in args if isinstance(arg, ir.Var))
