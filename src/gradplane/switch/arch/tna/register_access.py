"""The rule that a packet accesses a register once in a pass, as the chip's stateful ALUs do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, bodies
from gradplane.switch.source import Diagnostic, Span

REGISTERS = ("Register", "DirectRegister")

Used: TypeAlias = ir.ExternInstance | ir.Table
Seen = dict[Used, Span]
"""The externs and tables that a packet may have used before a statement, and where."""


def one_access(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse programs in which a packet may access a register twice, or in two blocks of a pipe."""
    owners: dict[Used, tuple[str, Span]] = {}
    for place, block in blocks(program.package):
        if not isinstance(block, ir.Control):
            continue
        walk = Uses(_is_register)
        walk.body(block.body, {})
        for register, span, first in walk.again:
            what = f"a packet may access register {register.name} a second time here"
            hint = f"the first access is at {first}; a stateful ALU makes one for each packet"
            yield Diagnostic(span, what, hint=hint)
        if place.endswith(".ghost"):
            continue  # it has an access of its own beside a packet's
        for register, span in walk.places.items():
            owner, where = owners.setdefault(register, (place, span))
            if owner != place and owner.split(".")[0] == place.split(".")[0]:
                what = f"register {register.name} is accessed in two blocks of a pipe"
                hint = f"the other access is at {where}: a register is in one stage"
                yield Diagnostic(span, what, hint=hint)


def _is_register(used: Used) -> bool:
    return isinstance(used, ir.ExternInstance) and used.type in REGISTERS


class Uses:
    """A walk along all ways of a packet through a control.

    `body` takes what was used before, None where no packet comes by, and returns the same for the
    statement after it. `wanted`: whether an extern or a table is followed. `places`: the first use
    of each. `again`: what a packet may use again, there, and the use before."""

    def __init__(self, wanted: Callable[[Used], bool]) -> None:
        self.wanted = wanted
        self.places: Seen = {}
        self.again: list[tuple[Used, Span, Span]] = []
        self._left: dict[ir.Block, Seen | None] = {}
        self._told: set[Span] = set()

    def body(self, stmts: Sequence[ir.Stmt], seen: Seen | None) -> Seen | None:
        before: ir.Stmt | None = None
        for stmt in stmts:
            if seen is None:
                return None
            seen = self._after(stmt, seen, before)
            if not isinstance(stmt, ir.Assign):
                before = stmt
        return seen

    def _after(self, stmt: ir.Stmt, seen: Seen, before: ir.Stmt | None) -> Seen | None:
        match stmt:
            case ir.CallExtern(instance=instance) if instance and self.wanted(instance):
                if _writes_back(stmt, before):
                    return seen
                return self._accessed(instance, stmt.span, seen)
            case ir.Block(access=action) if action is not None:
                register = action.accessed
                assert register is not None, action.name
                if not self.wanted(register):
                    return seen
                return self._accessed(register, stmt.span, seen)
            case ir.If() | ir.SwitchStmt():
                return _either([self.body(body, seen) for body in bodies(stmt)])
            case ir.ApplyTable(table=table):
                after = self.body(table.key_setup, seen)
                if after is None:
                    return None
                if self.wanted(table):
                    after = self._accessed(table, stmt.span, after)
                return _either([self.body(a.action.body, after) for a in table.actions])
            case ir.Block(body=body):
                self._left[stmt] = None
                end = self.body(body, seen)
                return _either([end, self._left.pop(stmt)])
            case ir.Leave(block=block):
                self._left[block] = _either([self._left.get(block), seen])
                return None
            case ir.Exit():
                return None
            case ir.Loop(body=body):  # its end is a Leave of a block around it
                self.body(body, seen)
                return None
        return seen

    def _accessed(self, used: Used, span: Span, seen: Seen) -> Seen:
        self.places.setdefault(used, span)
        if used in seen and span not in self._told:
            self._told.add(span)
            self.again.append((used, span, seen[used]))
        return {**seen, used: seen.get(used, span)}


def _either(ways: list[Seen | None]) -> Seen | None:
    """Return what a packet may have accessed that came along one of these ways."""
    possible = [way for way in ways if way is not None]
    if not possible:
        return None
    merged: Seen = {}
    for way in possible:
        merged.update(way)
    return merged


def _writes_back(stmt: ir.CallExtern, before: ir.Stmt | None) -> bool:
    """Return whether a write follows the read of the same register: both are one access."""
    return (
        stmt.name == "write"
        and isinstance(before, ir.CallExtern)
        and before.name == "read"
        and before.instance is stmt.instance
    )
