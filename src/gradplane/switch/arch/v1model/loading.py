"""Loading a v1model program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from gradplane.switch.arch.load_checks import extern_calls, full_name
from gradplane.switch.arch.v1model.field_lists import COPYING, number_lists
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.expression_builder import parts
from gradplane.switch.ir.types import BOOL, Array, Fields, Header, Stack, Union
from gradplane.switch.ir.walk import (
    blocks,
    bodies,
    expressions,
    header_of,
    nested,
    operands,
    overlap,
    path,
    statements,
    with_operands,
    writes,
)
from gradplane.switch.source import Diagnostic

PLACES = {
    "p": "the parser",
    "vr": "the checksum verification",
    "ig": "the ingress control",
    "eg": "the egress control",
    "ck": "the checksum computation",
    "dep": "the deparser",
}

_WITH_METADATA = ("p", "ig", "eg")  # blocks whose third parameter is the standard metadata
_WITH_CHECKSUMS = ("vr", "ck")
_CLONES = {"ig": "I2E", "eg": "E2E"}

# -- preparation --------------------------------------------------------------------------------


def drop_with_metadata(program: ir.Program) -> Iterable[Diagnostic]:
    """Give `mark_to_drop()`, the old form, the standard metadata of the block it stands in."""
    for place, block in blocks(program.package):
        if place in _WITH_METADATA:
            for stmt in statements(block):
                if _is_call(stmt, "mark_to_drop") and not stmt.args:
                    stmt.args, stmt.directions = [block.params[2].var], ["inout"]
    return ()


def trace_checksum_lists(program: ir.Program) -> Iterable[Diagnostic]:
    """Trace a checksum's list that a variable holds back to its source: done twice it changes
    nothing more.

    Only so are fields of invalid headers left out of it; p4c does the same. Values that are
    assigned to a variable, whole or member by member, are followed to the call, also into branches:

    list.x = h.x                              list.x = h.x
    list.y = h.y                              list.y = h.y
    update_checksum(in true, in list, ..)  ->  update_checksum(in true, in list{h.x, h.y}, ..)
    """
    for block in _checksum_blocks(program):
        _Known({}).follow_all(block.body)
    return ()


def verify_only_valid(program: ir.Program) -> Iterable[Diagnostic]:
    """Do not verify a checksum in an invalid header."""
    for block in _checksum_blocks(program):
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern) and stmt.name.startswith("verify_checksum"):
                condition, header = stmt.args[0], header_of(stmt.args[2])
                if header is not None and not _says_valid(condition, header):
                    stmt.args[0] = ir.Binary(BOOL, "&&", ir.IsValid(BOOL, header), condition)
    return ()


def number_field_lists(program: ir.Program) -> Iterable[Diagnostic]:
    """Give calls that name the metadata to preserve a list of these fields (`field_lists`)."""
    number_lists([program.package.control(name) for name in COPYING])
    return ()


PREPARE = (drop_with_metadata, trace_checksum_lists, verify_only_valid, number_field_lists)


def _is_call(stmt: ir.Stmt, name: str) -> TypeGuard[ir.CallExtern]:
    return isinstance(stmt, ir.CallExtern) and stmt.name == name


def _checksum_blocks(program: ir.Program) -> Iterable[ir.Control]:
    return (program.package.control(name) for name in _WITH_CHECKSUMS)


def _says_valid(condition: ir.Expr, header: ir.Expr) -> bool:
    first = condition.left if isinstance(condition, ir.Binary) else None
    return isinstance(first, ir.IsValid) and first.base is header


# -- where the lists of checksums come from -----------------------------------------------------


_Place = tuple[ir.Var, tuple[int, ...]]


class _Known:
    """The values of the variables assigned so far, as expressions over other storage."""

    def __init__(self, values: dict[_Place, tuple[ir.LValue, ir.Expr]]) -> None:
        self._values = values  # with the place as the l-value that was assigned to

    def follow_all(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            self.follow(stmt)

    def follow(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.Assign):
            value = self._traced(stmt.value)
            self._forget(stmt.target)
            self._learn(stmt.target, value)
        elif _is_checksum(stmt):
            stmt.args[1] = self._traced(stmt.args[1])
            self._forget_written(stmt)
        else:
            for body in bodies(stmt):
                _Known({} if isinstance(stmt, ir.Loop) else self._values.copy()).follow_all(body)
            for inside in nested([stmt]):
                self._forget_written(inside)

    def _forget_written(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.Assign) or _is_checksum(stmt):
            for target in writes(stmt):
                self._forget(target)
        elif not isinstance(stmt, ir.If | ir.SwitchStmt | ir.Block | ir.Loop | ir.Leave):
            self._values.clear()

    def _learn(self, target: ir.LValue, value: ir.Expr) -> None:
        if isinstance(value, ir.Make) and not isinstance(value.type, Header):
            for part, field in zip(_members(target), value.fields, strict=True):
                self._learn(part, field)
            return
        place = path(target)
        if place is not None and not _reads(value, target):
            self._values[place] = target, value

    def _forget(self, changed: ir.LValue) -> None:
        for place, (target, value) in [*self._values.items()]:
            if overlap(target, changed) or _reads(value, changed):
                del self._values[place]

    def _traced(self, e: ir.Expr) -> ir.Expr:
        """Return `e`, or an equal expression over the storage from which its values came."""
        if isinstance(e, ir.Make) and not isinstance(e.type, Header):
            return with_operands(e, [*map(self._traced, e.fields)])
        place = path(e)
        if place is None or not isinstance(e, ir.LValue):
            return e
        if place in self._values:
            return self._values[place][1]
        if isinstance(e.type, Fields | Array) and not isinstance(e.type, Header | Union | Stack):
            members = _members(e)
            traced = [*map(self._traced, members)]
            same = all(a is b for a, b in zip(members, traced, strict=True))
            return e if same else ir.Make(e.type, traced)
        return e


def _members(base: ir.LValue) -> list[ir.LValue]:
    return [part for part in parts(base) if isinstance(part, ir.LValue)]


def _reads(e: ir.Expr, changed: ir.LValue) -> bool:
    """Return whether a change of that storage could change the value of `e`."""
    match e:
        case ir.Const() | ir.Zero():
            return False
        case ir.Make(fields=fields):
            return any(_reads(field, changed) for field in fields)
    return overlap(e, changed)


def _is_checksum(stmt: ir.Stmt) -> TypeGuard[ir.CallExtern]:
    return isinstance(stmt, ir.CallExtern) and stmt.name.startswith(
        ("verify_checksum", "update_checksum")
    )


# -- rules --------------------------------------------------------------------------------------


def clone_types(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse clones of a type that is not that of the pipeline they are made in."""
    for place, call in extern_calls(program):
        if call.name.startswith("clone") and place in _CLONES:
            kind = call.args[0]
            if isinstance(kind, ir.Const) and kind.value != _CLONES[place]:
                what = f"in {PLACES[place]} the clone type must be {_CLONES[place]}"
                yield Diagnostic(call.span, f"{full_name(call)}: {what}, not {kind.value}")


RULES = (clone_types,)


# -- what shows how long packets wait between ingress and egress --------------------------------


_QUEUE_METADATA = {"enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"}


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
        if e.name in _QUEUE_METADATA:
            return True
        return not isinstance(e.base, ir.Var) and _sees(e.base)
    if isinstance(e.type, Fields) and _QUEUE_METADATA & {f.name for f in e.type.fields}:
        return True
    return any(map(_sees, operands(e)))
