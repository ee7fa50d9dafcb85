"""Walks over the statements of a program, with the blocks that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.ir import nodes as ir


def statements(block: ir.Parser | ir.Control) -> Iterator[ir.Stmt]:
    """Return all statements of a block, also those of the actions of the tables it applies."""
    seen: set[ir.Action] = set()
    for stmt in nested(_bodies(block)):
        yield stmt
        if isinstance(stmt, ir.ApplyTable):
            for choice in stmt.table.actions:
                if choice.action not in seen:
                    seen.add(choice.action)
                    yield from nested(choice.action.body)


def blocks(package: ir.Package) -> Iterator[tuple[str, ir.Parser | ir.Control]]:
    """Return the parsers and controls of a package and of those inside it, by parameter name."""
    for name, arg in package.args.items():
        if isinstance(arg, ir.Parser | ir.Control):
            yield name, arg
        elif isinstance(arg, ir.Package):
            yield from ((f"{name}.{inner}", block) for inner, block in blocks(arg))


def _bodies(block: ir.Parser | ir.Control) -> Iterator[ir.Stmt]:
    if isinstance(block, ir.Control):
        yield from block.body
        return
    yield from block.setup
    for state in block.states.values():
        yield from state.body
        yield from state.on_reject


def nested(stmts: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """Yield statements and those inside them in source order. Not recursive: they may nest deep."""
    pending = list(stmts)[::-1]
    while pending:
        stmt = pending.pop()
        yield stmt
        for body in reversed(children(stmt)):
            pending += reversed(body)


def children(stmt: ir.Stmt) -> list[list[ir.Stmt]]:
    """Return the bodies of a statement."""
    match stmt:
        case ir.If():
            return [stmt.then, stmt.other]
        case ir.SwitchStmt():
            return [*(body for _, body in stmt.cases), stmt.default]
        case ir.Block() | ir.Loop():
            return [stmt.body]
        case ir.ApplyTable():
            return [stmt.table.key_setup]
    return []
