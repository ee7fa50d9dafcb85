"""Whether a program can see how long its packets wait between ingress and egress."""

from __future__ import annotations

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.ir.walk import expressions, operands, statements

NAMES = {"enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"}


def sees_queues(program: ir.Program) -> bool:
    """Return whether egress uses the queueing metadata, or all of the standard metadata as one."""
    egress = program.package.control("eg")
    seeing = (stmt for stmt in statements(egress) if not _only_drops(stmt))
    return any(_sees(e) for stmt in seeing for e in expressions(stmt))


def _only_drops(stmt: ir.Stmt) -> bool:
    """Return whether a statement gets the standard metadata only to write where packets leave."""
    return isinstance(stmt, ir.CallExtern) and stmt.name == "mark_to_drop"


def _sees(e: ir.Expr) -> bool:
    if isinstance(e, ir.FieldOf):
        if e.name in NAMES:
            return True
        return not isinstance(e.base, ir.Var) and _sees(e.base)
    if isinstance(e.type, Fields) and NAMES & {f.name for f in e.type.fields}:
        return True
    return any(map(_sees, operands(e)))
