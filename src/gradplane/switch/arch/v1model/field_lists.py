"""The metadata that a packet's replica keeps: lists of fields, by number.

Fields marked @field_list(n, ...) are in lists 0 to 255. The older calls, `clone3(.., data)`,
`resubmit(data)` and `recirculate(data)`, name the fields themselves, also standard metadata: each
gets a new list and becomes the newer call, with the data after its number:

    clone3(I2E, s, {m.x, m.y})  ->  clone_preserving_field_list(I2E, s, 257, {m.x, m.y})
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Fields, Header, Struct, Type
from gradplane.switch.ir.walk import path, statements
from gradplane.switch.machine.weaving import Expansions

COPYING = ("ig", "eg")  # blocks that may clone, resubmit, recirculate

Path = tuple[int, ...]
Place = tuple[Path, Type]

NO_LIST = 256
NAMED = 257  # the first number of a list that a call names

# Calls that name fields, each with the newer one and the position of the data.
_NEWER = {
    "clone3": ("clone_preserving_field_list", 2),
    "resubmit": ("resubmit_preserving_field_list", 0),
    "recirculate": ("recirculate_preserving_field_list", 0),
}
_DATA = {newer: position + 1 for newer, position in _NEWER.values()}


def number_lists(blocks: list[ir.Control]) -> None:
    """Rewrite the older calls in place, if all they name are metadata fields; done twice it changes
    nothing more."""
    number = NAMED + sum(1 for block in blocks for _ in _named(block))
    for block in blocks:
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern) and not stmt.instance and stmt.name in _NEWER:
                newer, position = _NEWER[stmt.name]
                if list_of(block, stmt.args[position]) is not None:
                    stmt.name = newer
                    stmt.args.insert(position, ir.Const(Bits(32), number))
                    stmt.directions.insert(position, "in")
                    number += 1


def list_of(block: ir.Control, data: ir.Expr) -> list[Place] | None:
    """Return the places of a call's data in (metadata, standard metadata); None if some are
    elsewhere."""
    if isinstance(data, ir.Make):
        parts = [list_of(block, part) for part in data.fields]
        return None if None in parts else [place for part in parts for place in part or ()]
    if isinstance(data.type, Fields) and not data.type.fields:
        return []
    found = path(data)
    if found is None or not _of_structs(data):
        return None
    for i, param in enumerate(block.params[1:3]):
        if found[0] is param.var:
            return [((i, *found[1]), data.type)]
    return None


def _of_structs(e: ir.Expr) -> bool:
    """Return whether an expression names a field of structs in structs."""
    while isinstance(e, ir.FieldOf) and isinstance(e.base.type, Struct):
        e = e.base
    return isinstance(e, ir.Var)


def _named(block: ir.Control) -> Iterator[tuple[int, ir.Expr]]:
    """Yield the numbers of the lists that calls name, and the data."""
    for stmt in statements(block):
        if isinstance(stmt, ir.CallExtern) and stmt.name in _DATA:
            at = _DATA[stmt.name]
            if len(stmt.args) > at:
                number = stmt.args[at - 1]
                assert isinstance(number, ir.Const), number
                yield int(number.value), stmt.args[at]


class FieldLists:
    """A program's field lists.

    paths: for each number, the places of its fields in (metadata, standard metadata)."""

    def __init__(self, meta: Type, blocks: list[ir.Control]) -> None:
        self.paths: dict[int, list[Place]] = {}
        if isinstance(meta, Fields):
            self._collect(meta, (0,))
        for block in blocks:
            for number, data in _named(block):
                self.paths[number] = list_of(block, data) or []

    def _collect(self, t: Fields, steps: Path) -> None:
        for i, field in enumerate(t.fields):
            for number in _numbers(field):
                self.paths.setdefault(number, []).append(((*steps, i), field.type))
            if isinstance(field.type, Fields) and not isinstance(field.type, Header):
                self._collect(field.type, (*steps, i))


def _numbers(field: Field) -> list[int]:
    values = [v for a in field.annotations if a.name == "field_list" for v in a.values]
    return [int(v) for v in values if not isinstance(v, str)]


# -- in the packet's path -------------------------------------------------------------------------


def expansions(program: ir.Program) -> Expansions:
    """Return what the calls of v1model's own primitive stand for in its path."""
    meta = program.package.parser("p").params[1].var.type
    lists = FieldLists(meta, [program.package.control(name) for name in COPYING])
    return {"preserve": partial(_preserve, lists)}


def _preserve(lists: FieldLists, call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statements of preserve(list, meta, standard, kept, kept_standard): a switch on the
    list's number, with an assignment for each field that it preserves."""
    number, *sources = call.args[:3]
    targets = call.args[3:]
    cases = [
        ([value], [_copied(place, sources, targets) for place in places])
        for value, places in lists.paths.items()
    ]
    return [ir.SwitchStmt(number, cases, [], span=call.span)]


def _copied(place: Place, sources: list[ir.Expr], targets: list[ir.Expr]) -> ir.Stmt:
    (which, *steps), _ = place
    source, target = sources[which], targets[which]
    for index in steps:
        source = expression_builder.field(source, index)
        target = expression_builder.field(target, index)
    assert isinstance(target, ir.LValue), target
    return ir.Assign(target, source)
